// Package copies tests what a program that keeps a copy of a store elsewhere is told: why the log that
// it follows has ended, whatever ended it, and that the copy is too far behind.
package copies
