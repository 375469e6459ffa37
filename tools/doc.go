// Package tools pins the versions of the programs that the checks run, separately from the module
// that users import: go tool -modfile=tools/go.mod staticcheck ./... It also has typecheck, which checks a module
// for other systems.
package tools
