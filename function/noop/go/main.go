// Command noop answers every request by "ok", and that to a model by an empty inference: what is left is the time of the
// platform.
package main

import (
	"context"

	"framestorm.local/function/shell"
)

func main() {
	shell.Main(func(context.Context, []byte) ([]byte, error) { return []byte("ok"), nil }, modelRoutes...)
}
