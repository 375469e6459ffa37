// Package shape checks whether each place of a store has what belongs there: a file, or a folder.
// Links, FIFOs, sockets and devices are never opened, and nothing behind them is read. Package
// places lists the places.
package shape
