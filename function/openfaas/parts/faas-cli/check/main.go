// Command stack-check reads stack files with the very types of faas-cli, and refuses by its line what faas-cli would
// leave out in silence: a misspelt key, a key that is there twice, a value of another type, an amount that is none.
//
//	stack-check stack.yml
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/drone/envsubst"
	"github.com/openfaas/faas-cli/stack"
	"gopkg.in/yaml.v2"
)

// Keys that begin with x- are kept free for anchors, as in other files of this kind.
var unknownKey = regexp.MustCompile(`^(line \d+): field (\S+) not found in type stack\.(\S+)$`)

// An amount of CPU or memory: Kubernetes' quantities, and Docker's m and g of memory.
var quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]*)?([munkKMGTPEg]|[KMGTPE]i|[eE][0-9]+)?$`)

// Go's names of what has keys, in a reader's words.
var places = map[string]string{
	"Services":           "the file",
	"Function":           "a function",
	"FunctionResources":  "limits or requests",
	"Provider":           "provider",
	"StackConfiguration": "configuration",
	"TemplateSource":     "a template",
}

// check lists what is wrong with a stack file.
func check(text string) []string {
	// Before YAML is read, as faas-cli does it; no line is added or lost.
	text, err := envsubst.Eval(text, os.Getenv)
	if err != nil {
		return []string{"a ${VARIABLE} is not closed or not understood: " + err.Error()}
	}
	var services stack.Services
	err = yaml.UnmarshalStrict([]byte(text), &services)
	var several *yaml.TypeError
	if errors.As(err, &several) {
		if list := readable(several.Errors); list != nil {
			return list
		}
	} else if err != nil {
		return []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(services.Functions) == 0 {
		return []string{"there are no functions in it"}
	}
	return amounts(text, services)
}

// amounts lists what of limits and requests is not an amount.
func amounts(text string, services stack.Services) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(services.Functions)) {
		function := services.Functions[name]
		for _, resources := range []*stack.FunctionResources{function.Limits, function.Requests} {
			if resources == nil {
				continue
			}
			for key, value := range map[string]string{"cpu": resources.CPU, "memory": resources.Memory} {
				if value != "" && !quantity.MatchString(value) {
					list = append(list, fmt.Sprintf("%s%s: %s %q is not an amount, such as 500m or 128Mi", line(text, key, value), name, key, value))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// line says where a key has a value; nothing where an anchor or the like stands between them.
func line(text, key, value string) string {
	place := regexp.MustCompile(key + `["']?\s*:\s*["']?` + regexp.QuoteMeta(value)).FindStringIndex(text)
	if place == nil {
		return ""
	}
	return fmt.Sprintf("line %d: ", 1+strings.Count(text[:place[0]], "\n"))
}

func readable(problems []string) []string {
	var list []string
	for _, problem := range problems {
		seen := unknownKey.FindStringSubmatch(problem)
		switch {
		case seen == nil:
			list = append(list, problem)
		case !strings.HasPrefix(seen[2], "x-"):
			list = append(list, fmt.Sprintf("%s: %s has no key %q", seen[1], places[seen[3]], seen[2]))
		}
	}
	return list
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: stack-check FILE")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if problems := check(string(text)); len(problems) > 0 {
		for _, problem := range problems {
			fmt.Fprintf(os.Stderr, "%s: %s\n", os.Args[1], problem)
		}
		os.Exit(1)
	}
}
