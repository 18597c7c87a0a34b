package main

import (
	"os"
	"slices"
	"testing"
)

const end = "provider:\n  name: openfaas\n"

func TestCheck(t *testing.T) {
	for name, one := range map[string]struct {
		text     string
		problems []string
	}{
		"right":          {"x-env: &e\n  a: b\nfunctions:\n  a:\n    image: ${NO_SUCH:-x}/a\n    environment: *e\n", nil},
		"misspelt key":   {"functions:\n  a:\n    image: x\n    lables: {}\n", []string{`line 4: a function has no key "lables"`}},
		"misspelt limit": {"functions:\n  a:\n    limits:\n      cpus: 1\n", []string{`line 4: limits or requests has no key "cpus"`}},
		"amounts": {
			"functions:\n  a:\n    limits: {cpu: lots, memory: 12Qi}\n" +
				"  b:\n    requests:\n      cpu: '0.5'\n      memory: 128Mi\n",
			[]string{
				`line 3: a: cpu "lots" is not an amount, such as 500m or 128Mi`,
				`line 3: a: memory "12Qi" is not an amount, such as 500m or 128Mi`,
			},
		},
		"amount beside a key for anchors": {
			"x-env: 1\nfunctions:\n  a:\n    limits: {cpu: lots}\n",
			[]string{`line 4: a: cpu "lots" is not an amount, such as 500m or 128Mi`},
		},
		"nothing but a key for anchors": {"x-env: 1\n", []string{"there are no functions in it"}},
		"two": {
			"function:\n  a: 1\nfunctions:\n  a: {img: x}\n",
			[]string{`line 1: the file has no key "function"`, `line 4: a function has no key "img"`},
		},
		"twice":        {"functions:\n  a:\n    image: x\n    image: y\n", []string{`line 4: field image already set in type stack.Function`}},
		"another type": {"functions:\n  a:\n    labels: 3\n", []string{"line 3: cannot unmarshal !!int `3` into map[string]string"}},
		"not YAML":     {"functions:\n  a:\n    image: [x\n", []string{"line 3: did not find expected ',' or ']'"}},
		"nothing":      {"", []string{"there are no functions in it"}},
		"not closed":   {"functions: ${A", []string{"a ${VARIABLE} is not closed or not understood: bad substitution"}},
	} {
		t.Run(name, func(t *testing.T) {
			if problems := check(one.text + end); !slices.Equal(problems, one.problems) {
				t.Errorf("%q", problems)
			}
		})
	}
}

func TestOurOwn(t *testing.T) {
	text, err := os.ReadFile("../../../../stack.yml")
	if err != nil {
		t.Fatal(err)
	}
	if problems := check(string(text)); problems != nil {
		t.Errorf("%q", problems)
	}
}
