// Command sleep waits for as many seconds as the request's body says: a function that waits for something else. With
// seconds in its environment it waits for these, whatever the body, so that the frame client can be kept waiting too.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"framestorm.local/function/shell"
)

const maxSeconds = 3600

func main() { shell.Main(sleep) }

func sleep(ctx context.Context, body []byte) ([]byte, error) {
	text := os.Getenv("seconds")
	if text == "" {
		text = strings.TrimSpace(string(body))
	}
	seconds, err := strconv.ParseFloat(text, 64)
	// The negated form also refuses NaN.
	if err != nil || !(seconds >= 0 && seconds <= maxSeconds) {
		return nil, fmt.Errorf("%.40q: seconds from 0 to %d were expected", text, maxSeconds)
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	case <-ctx.Done():
	}
	return []byte("slept " + text + " s\n"), nil
}
