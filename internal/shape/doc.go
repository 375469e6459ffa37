// Package shape looks whether in each place of a store there is what has to be there: a file, or
// a folder. Links, FIFOs, sockets and devices are never opened, and nothing behind them is
// looked at. What has to be where is in package places.
package shape
