package main

import "os"

func main() {
	ctx, e := listen(system())
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, e))
}
