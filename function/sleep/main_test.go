package main

import (
	"testing"
	"time"
)

func TestSleep(t *testing.T) {
	started := time.Now()
	if answer, err := sleep(t.Context(), []byte("0.05\n")); err != nil || string(answer) != "slept 0.05 s\n" {
		t.Errorf("%q %v", answer, err)
	}
	if took := time.Since(started); took < 50*time.Millisecond {
		t.Errorf("took %s", took)
	}
	for _, bad := range []string{"", "soon", "-1", "NaN", "1e9"} {
		if _, err := sleep(t.Context(), []byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	t.Setenv("seconds", "0.01")
	if answer, err := sleep(t.Context(), []byte("an image")); err != nil || string(answer) != "slept 0.01 s\n" {
		t.Errorf("by the environment: %q %v", answer, err)
	}
}
