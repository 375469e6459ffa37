// Package repairs tests verification, repair, rebuilding, and stores of newer programs.
package repairs
