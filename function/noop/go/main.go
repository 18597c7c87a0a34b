// Command noop answers every request by "ok": what is left is the time of the platform.
package main

import (
	"context"

	"framestorm.local/function/shell"
)

func main() {
	shell.Main(func(context.Context, []byte) ([]byte, error) { return []byte("ok"), nil })
}
