// Package children lets a program start itself several times over one store: each process opens it, says that
// it is ready, begins when it is told to, and gives its result as JSON.
package children
