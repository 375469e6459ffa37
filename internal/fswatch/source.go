package fswatch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// event is that something happened to a file.
type event struct {
	folder, name string
	// all: to more than can be told. ended: the folder is not watched any more. moved: a folder in it has
	// gone, with files that have no events of their own. entered: the name is that of a folder that is watched
	// since a moment ago; what was in it before may have left it without an event.
	all, ended, moved, entered bool
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
	folders map[string]string // path: name; "" is that of the store, while it lacks the folder of a kind
	inner   map[string]event  // the folders in trees, by path; name is theirs in the tree
	events  chan event
	done    chan struct{}
	stopped chan struct{}
}

// notify watches folders, given by their paths. The name "" is that of the store's folder: there the source ends when
// the folder of a kind appears.
func notify(folders map[string]string) (source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, limited("watching files", err)
	}
	n := &notified{w: w, folders: folders, inner: map[string]event{}, events: make(chan event),
		done: make(chan struct{}), stopped: make(chan struct{})}
	for path, name := range folders {
		err := error(nil)
		if name != "" {
			err = isFolder(path)
		}
		if err == nil {
			err = w.Add(path)
		}
		if k := kind.Filing(name); err == nil && k != nil && k.Tree() {
			_, err = n.enter(path, name, "")
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
		var more []event
		select {
		case out <- head:
			queue = queue[1:]
			delete(queued, head)
			continue
		case ev, open := <-n.w.Events:
			if !open {
				return
			}
			e, more, ok = n.told(ev)
		case err, open := <-n.w.Errors:
			if !open {
				return
			}
			// An overflow, or an error of reading: either way something was missed.
			e, ok = event{all: true, ended: !errors.Is(err, fsnotify.ErrEventOverflow)}, true
		case <-n.done:
			return
		}
		if ok {
			more = append(more, e)
		}
		for _, e := range more {
			if queued[e] {
				continue
			}
			if len(queue) >= queueMost {
				e, queue = event{all: true}, nil
				clear(queued)
			}
			queue, queued[e] = append(queue, e), true
		}
	}
}

// enter watches the folders in a folder of a tree, and returns the files in them: these may have come
// before the watch. prefix is the path of the folder in the tree, with the slash behind it.
func (n *notified) enter(path, folder, prefix string) (files []event, err error) {
	list, err := vfs.ReadTypes(vfs.OS(), path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		in, name := filepath.Join(path, e.Name), e.Name
		if !e.Type.IsDir() {
			files = append(files, event{folder: folder, name: prefix + name})
			continue
		}
		if strings.Count(prefix, "/")+1 >= docfile.MostDepth {
			continue // what is in it is no document
		}
		if err := n.w.Add(in); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return files, err
		}
		n.inner[in] = event{folder: folder, name: prefix + name}
		more, err := n.enter(in, folder, prefix+name+"/")
		if files = append(files, more...); err != nil {
			return files, err
		}
	}
	return files, err
}

// told is what the system's event says of a file in a folder, or of a folder.
func (n *notified) told(ev fsnotify.Event) (e event, more []event, ok bool) {
	if _, known := n.folders[ev.Name]; !known && n.folders[filepath.Dir(ev.Name)] == "" {
		if _, root := n.folders[filepath.Dir(ev.Name)]; root {
			return event{ended: true}, nil, ev.Has(fsnotify.Create) && kind.Filing(filepath.Base(ev.Name)) != nil
		}
	}
	if folder, ok := n.folders[ev.Name]; ok {
		return event{folder: folder, ended: true}, nil, ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)
	}
	if in, ok := n.inner[ev.Name]; ok && (ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)) {
		for path := range n.inner { // watched under names that they do not have any more
			if path == ev.Name || strings.HasPrefix(path, ev.Name+string(filepath.Separator)) {
				_ = n.w.Remove(path)
				delete(n.inner, path)
			}
		}
		// A folder that was removed was empty: each file has left it with an event of its own.
		return event{folder: in.folder, moved: true}, nil, ev.Has(fsnotify.Rename)
	}
	e, ok = n.inner[filepath.Dir(ev.Name)]
	if ok {
		e.name += "/" + filepath.Base(ev.Name)
	} else if e.folder, ok = n.folders[filepath.Dir(ev.Name)]; ok {
		e.name = filepath.Base(ev.Name)
	}
	if k := kind.Filing(e.folder); !ok || k == nil || !k.Tree() || !ev.Has(fsnotify.Create) {
		return e, nil, ok
	}
	info, err := vfs.OS().Stat(ev.Name)
	if err != nil || !info.Mode.IsDir() {
		return e, nil, true
	}
	if err = n.w.Add(ev.Name); err == nil {
		n.inner[ev.Name], e.entered = e, true
		more, err = n.enter(ev.Name, e.folder, e.name+"/")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the next session says why
		return event{all: true, ended: true}, more, true
	}
	return e, more, true
}
