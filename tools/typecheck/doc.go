// Command typecheck prints the type errors of all packages of a module and of their tests, for systems other than this
// one, without compiling anything:
//
//	typecheck DIR GOOS/GOARCH...
//
// DIR is the folder of the module. The exit status is 1 if there are errors, and 2 for wrong arguments. Typecheck reads
// the source of imported packages instead of compiling them. A build for another system, which takes minutes with an
// empty build cache, finds the same errors, and in addition those in assembly files.
package main
