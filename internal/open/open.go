package open

import (
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/erase/purge"
	"github.com/varve-db/varve/internal/store"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/views"
)

// Environment is what a store is opened in.
type Environment struct {
	// System replaces the machine. A nil FS is the operating system's, a size of 0 the default.
	System vfs.System
	// Views are the views that plug in; nil: views.All, those of every store. A test of what no
	// view should change says that there are none ([]views.Maker{}).
	Views []views.Maker
	// Watcher watches the files of the store instead of the one that Options.WatchFiles stands for.
	Watcher Watcher
}

// Watcher watches the files of a store.
type Watcher = store.Watcher

// In returns a copy of options that has the environment. O is varve.Options.
func In[O any](o *O, e Environment) *O {
	c := *o
	*Of(&c) = e
	return &c
}

// Of is the environment that options have, to be read and changed. O is varve.Options.
func Of[O any](o *O) *Environment { return environment(o) }

// Parts are those of an open store that tests look at.
type Parts struct {
	Engine  *engine.Engine
	Vectors *vectors.Vectors
	Commits *commit.Committer
	Purger  *purge.Purger
}

// Inside gives the parts of a store. S is varve.Store.
func Inside[S any](st *S) Parts { return inside(st) }

// Of package varve, which imports this one.
var (
	environment func(o any) *Environment
	inside      func(st any) Parts
)

// Register says how to reach the environment of options (a *varve.Options), and the parts of a
// store (a *varve.Store). Package varve calls it when it is initialized.
func Register(of func(o any) *Environment, parts func(st any) Parts) {
	environment, inside = of, parts
}
