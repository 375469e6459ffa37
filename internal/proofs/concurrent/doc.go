// Command concurrent prints the tests below the working directory that start goroutines, themselves or through the
// functions of their package's test files: "folder test", a line each. The race detector of .ci/run runs these; that
// of .ci/long runs all tests.
package main
