package store

import (
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/views"
)

// Environment is the environment in which a store is opened. The zero value is the real machine; tests
// replace parts of it.
type Environment struct {
	// System replaces the machine: the file system, the clock and others. A nil FS means the operating system's, a
	// size of 0 the default.
	System vfs.System
	// Views are the plugged-in views; nil means views.All, those of every store. A test that must not be
	// affected by any view passes an empty list.
	Views []views.Maker
	// Watcher watches the files of the store, instead of the watcher for Options.WatchFiles.
	Watcher Watcher
}
