package main

import "testing"

func TestWork(t *testing.T) {
	for body, want := range map[string]string{"": "1 units: ", "2": "2 units: "} {
		first, err := work(t.Context(), []byte(body))
		again, _ := work(t.Context(), []byte(body))
		if err != nil || string(first) != string(again) || string(first[:9]) != want {
			t.Errorf("%q: %q, again %q, %v", body, first, again, err)
		}
	}
	for _, bad := range []string{"0", "-1", "much", "10001"} {
		if _, err := work(t.Context(), []byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
