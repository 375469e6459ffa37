// Package env has what every part of an open store gets: its folder, the file system below that
// folder, the clock, the logger, the modes of files and folders, and the receiver of events. It
// also explains an error of the system: its cause and a remedy.
//
// A part of the store that is independent of the others needs only an Env, and its tests fill one
// in.
package env
