package fswatch

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// event is that something happened to a file.
type event struct {
	folder, name string
	// all: to more than can be told. ended: the folder is not watched any more.
	all, ended bool
}

// source tells of files in folders.
type source interface {
	// Events is nil for one that never tells.
	Events() <-chan event
	Close()
}

// none is for where folders cannot be watched.
type none struct{}

func (none) Events() <-chan event { return nil }
func (none) Close()               {}

// notified is the system's.
type notified struct {
	w       *fsnotify.Watcher
	folders map[string]string // path: name
	events  chan event
	done    chan struct{}
	stopped chan struct{}
}

// notify watches folders, given by their paths.
func notify(folders map[string]string) (source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, limited("watching files", err)
	}
	n := &notified{w: w, folders: folders, events: make(chan event), done: make(chan struct{}),
		stopped: make(chan struct{})}
	for path := range folders {
		err := isFolder(path)
		if err == nil {
			err = w.Add(path)
		}
		if err != nil {
			_ = w.Close()
			return nil, limited("watching "+path, err)
		}
	}
	go n.run()
	return n, nil
}

// limited names the limit of the system that is behind an error of it.
func limited(what string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return &limitError{what, wal.NoWatches}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return &limitError{what, wal.NoInstances}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isFolder refuses a link: the system would watch what it leads to.
func isFolder(path string) error {
	info, err := vfs.OS().Stat(path)
	if err == nil && !info.Mode.IsDir() {
		err = &vfs.NotFolderError{Path: path, Mode: info.Mode}
	}
	return err
}

func (n *notified) Events() <-chan event { return n.events }

func (n *notified) Close() {
	close(n.done)
	<-n.stopped
	_ = n.w.Close()
}

// queueMost is how many files are told of at most; more is everything.
const queueMost = 100_000

// run takes events from the system as they come, so that its own queue does not
// overflow while a file is looked at. Of each file one waits at most.
func (n *notified) run() {
	defer close(n.stopped)
	var queue []event
	queued := map[event]bool{}
	for {
		var out chan<- event
		var head event
		if len(queue) > 0 {
			out, head = n.events, queue[0]
		}
		var e event
		var ok bool
		select {
		case out <- head:
			queue = queue[1:]
			delete(queued, head)
			continue
		case ev, open := <-n.w.Events:
			if !open {
				return
			}
			e, ok = n.told(ev)
		case err, open := <-n.w.Errors:
			if !open {
				return
			}
			// An overflow, or an error of reading: either way something was missed.
			e, ok = event{all: true, ended: !errors.Is(err, fsnotify.ErrEventOverflow)}, true
		case <-n.done:
			return
		}
		if !ok || queued[e] {
			continue
		}
		if len(queue) >= queueMost {
			e, queue = event{all: true}, nil
			clear(queued)
		}
		queue, queued[e] = append(queue, e), true
	}
}

// told is what the system's event says of a file in a folder, or of a folder.
func (n *notified) told(ev fsnotify.Event) (event, bool) {
	if folder, ok := n.folders[ev.Name]; ok {
		return event{folder: folder, ended: true}, ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)
	}
	folder, ok := n.folders[filepath.Dir(ev.Name)]
	return event{folder: folder, name: filepath.Base(ev.Name)}, ok
}
