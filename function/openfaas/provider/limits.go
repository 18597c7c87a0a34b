package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openfaas/faas-provider/types"
)

// Units of Kubernetes' quantities, which OpenFaaS's stack files use.
var memoryUnits = []struct {
	suffix string
	bytes  float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9},
	{"m", 1 << 20}, {"g", 1 << 30}, {"", 1},
}

// limits reads cpu ("500m", "0.5") as cores and memory ("128Mi", or Docker's "128m") as bytes; 0 is none.
func limits(r *types.FunctionResources) (cpus float64, memoryBytes int64, err error) {
	if r == nil {
		return 0, 0, nil
	}
	if r.CPU != "" {
		scale, text := 1.0, r.CPU
		if milli, ok := strings.CutSuffix(r.CPU, "m"); ok {
			scale, text = 1e-3, milli
		}
		cores, err := strconv.ParseFloat(text, 64)
		if cpus = cores * scale; err != nil || cpus < 0.01 {
			return 0, 0, fmt.Errorf("cpu limit %q: give cores (0.5) or thousandths (500m), at least 10m", r.CPU)
		}
	}
	if r.Memory != "" {
		for _, unit := range memoryUnits {
			text, ok := strings.CutSuffix(r.Memory, unit.suffix)
			if !ok {
				continue
			}
			number, err := strconv.ParseFloat(text, 64)
			if memoryBytes = int64(number * unit.bytes); err != nil || memoryBytes < 4<<20 {
				return 0, 0, fmt.Errorf("memory limit %q: give for example 128Mi, at least 4Mi", r.Memory)
			}
			break
		}
	}
	return cpus, memoryBytes, nil
}
