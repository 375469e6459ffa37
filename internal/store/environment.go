package store

import (
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/views"
)

// Environment is the environment in which a store is opened. The zero value is the real machine; tests replace parts of
// it.
type Environment struct {
	// System replaces the machine on which the store runs. A nil FS means the operating system's, a size of 0
	// the default.
	System vfs.System
	// Views are the functions that make the store's views; nil means views.All, those of every store. A test
	// that must not be affected by any view passes an empty list.
	Views []views.Maker
	// Watcher watches the files of the store, in place of the watcher of Options.WatchFiles.
	Watcher Watcher
}
