// Package env defines the environment of every part of an open store: its folder, the file system below
// that folder, the clock, the logger, the modes of files and folders, and the receiver of events. It
// also explains an error of the system: its cause and a remedy.
//
// A part of the store that is independent of the others needs only an Env, and its tests create one.
package env
