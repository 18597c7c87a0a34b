// Command cpu does a fixed amount of work for each request, on one core: the same on every machine, so that the time it
// takes is the machine's. The request's body is the number of units, 1 if it is empty.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"framestorm.local/function/shell"
)

const (
	hashesPerUnit = 100_000
	maxUnits      = 10_000
)

func main() { shell.Main(work) }

func work(ctx context.Context, body []byte) ([]byte, error) {
	units, text := 1, strings.TrimSpace(string(body))
	if text != "" {
		var err error
		if units, err = strconv.Atoi(text); err != nil || units < 1 || units > maxUnits {
			return nil, fmt.Errorf("body %.40q: units of work from 1 to %d were expected", text, maxUnits)
		}
	}
	// Each hash needs the one before: no compiler and no second core can shorten it.
	var digest [sha256.Size]byte
	for range units {
		for range hashesPerUnit {
			digest = sha256.Sum256(digest[:])
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return fmt.Appendf(nil, "%d units: %x\n", units, digest[:8]), nil
}
