// Package env is what every part of an open store is given: its folder, the file system
// below that folder, the clock, the logger, the modes of files and folders, and whom events
// are told to. It also says of an error of the system what stands in the way and what helps.
//
// A part of the store that needs nothing of its neighbours needs only this, and is tested
// with an Env that the test fills in.
package env
