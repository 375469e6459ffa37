package main

import (
	"context"
	"io"
	"os"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func main() {
	ctx, e := cli.Listen(cli.System())
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, e))
}

// run runs the whole program, with its streams and its environment as arguments; it returns the
// exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, e cli.Environment) int {
	return cli.Run(ctx, root, args, in, out, errOut, e)
}
