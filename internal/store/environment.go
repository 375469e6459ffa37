package store

import (
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/views"
)

// Environment is what a store is opened in. The zero value is the machine as it is; tests replace parts of it.
type Environment struct {
	// System replaces the machine. A nil FS is the operating system's, a size of 0 the default.
	System vfs.System
	// Views are the views that plug in; nil: views.All, those of every store. A test of what no
	// view should change passes an empty list.
	Views []views.Maker
	// Watcher watches the files of the store in place of the one that Options.WatchFiles stands for.
	Watcher Watcher
}
