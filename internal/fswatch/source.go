package fswatch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// event reports a change of a file or folder, or of the watch itself.
type event struct {
	folder, name string
	// all: the event stands for more files than single events can report. ended: the folder is not watched anymore.
	// moved: a folder in it is gone, with files that have no events of their own. entered: the name is that of a folder
	// whose watch began a moment ago, or may be that of a folder that was removed before its watch began; files may have
	// left it without an event.
	all, ended, moved, entered bool
	// at is when the source received it; the session may be checking other files then, and receive it much later. The
	// zero value means now.
	at time.Time
}

func (e event) time() time.Time {
	if e.at.IsZero() {
		return time.Now()
	}
	return e.at
}

// source sends the events of the files in some folders.
type source interface {
	// Events returns nil for a source without notifications.
	Events() <-chan event
	Close()
}

// none is the source for folders that cannot be watched: it sends no events.
type none struct{}

func (none) Events() <-chan event { return nil }
func (none) Close()               {}

// notified is the source that sends the notifications of the system.
type notified struct {
	w *fsnotify.Watcher
	// names of the watched folders by path; "" is the name of the store's folder, which is watched while the store
	// lacks the folder of a kind
	folders map[string]string
	inner   map[string]event // the watched folders in trees, by path; the name in an event is their path in the tree
	events  chan event
	done    chan struct{}
	stopped chan struct{}
}

// notify starts to watch folders for events. folders maps the path of each folder to its name. The name "" is that of
// the store's own folder: the source ends when the folder of a kind of document appears in the store's folder.
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

// limited returns err with the action that failed. If a limit of the system caused err, it instead returns a
// *limitError, which names the action and the limit.
func limited(action string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return &limitError{action, wal.NoWatches}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return &limitError{action, wal.NoInstances}
	}
	return fmt.Errorf("%s: %w", action, err)
}

// isFolder returns an error if path is not a folder. A link is not accepted, because the system would watch the link's
// target.
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

// queueMost is the maximum number of files with queued events. If more files have events, one event whose field all is
// true replaces the queued events.
const queueMost = 100_000

// run receives events from the system as they come, so that the system's queue does not overflow while a file
// is checked. At most one event of each file is queued, with the time of the last one.
func (n *notified) run() {
	defer close(n.stopped)
	var queue []event
	queued := map[event]time.Time{} // the keys have no time
	for {
		var out chan<- event
		var head event
		if len(queue) > 0 {
			out, head = n.events, queue[0]
			head.at = queued[head]
		}
		var e event
		var ok bool
		var more []event
		select {
		case out <- head:
			delete(queued, queue[0])
			queue = queue[1:]
			continue
		case ev, open := <-n.w.Events:
			if !open {
				return
			}
			e, more, ok = n.eventOf(ev)
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
			if _, ok := queued[e]; ok {
				queued[e] = time.Now()
				continue
			}
			if len(queue) >= queueMost {
				e, queue = event{all: true}, nil
				clear(queued)
			}
			queue, queued[e] = append(queue, e), time.Now()
		}
	}
}

// enter watches the subfolders of a folder in a tree, and returns events for the files in them, because a file may have
// been created before its folder was watched. prefix is the path of the folder in the tree, with a trailing slash.
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
			continue // nothing in it is a document
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

// eventOf converts a notification of the system into an event for a file in a folder, or for a folder. If the
// notification is about a folder that was created, more has events for the files in that folder. ok is false if
// the notification is about something else.
func (n *notified) eventOf(ev fsnotify.Event) (e event, more []event, ok bool) {
	if _, known := n.folders[ev.Name]; !known && n.folders[filepath.Dir(ev.Name)] == "" {
		if _, root := n.folders[filepath.Dir(ev.Name)]; root {
			return event{ended: true}, nil, ev.Has(fsnotify.Create) && kind.Filing(filepath.Base(ev.Name)) != nil
		}
	}
	if folder, ok := n.folders[ev.Name]; ok {
		return event{folder: folder, ended: true}, nil, ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)
	}
	if in, ok := n.inner[ev.Name]; ok && (ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)) {
		for path := range n.inner { // watched under names that they no longer have
			if path == ev.Name || strings.HasPrefix(path, ev.Name+string(filepath.Separator)) {
				_ = n.w.Remove(path)
				delete(n.inner, path)
			}
		}
		// A folder that was removed and created again is watched already if the system tells of its creation first.
		if info, err := vfs.OS().Stat(ev.Name); err == nil && info.Mode.IsDir() {
			e, more, ok = n.created(ev.Name, event{folder: in.folder, name: in.name})
			if ev.Has(fsnotify.Rename) {
				more = append(more, event{folder: in.folder, moved: true})
			}
			return e, more, ok
		}
		// A folder that was removed was empty: each file in it had its own event.
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
	if errors.Is(err, fs.ErrNotExist) {
		e.entered = true // if it was a folder, files in it were removed without an event
		return e, nil, true
	}
	if err != nil || !info.Mode.IsDir() {
		return e, nil, true
	}
	return n.created(ev.Name, e)
}

// created watches the folder at path, which was created, and its subfolders. e is the event of its creation. The
// results of created are those of eventOf.
func (n *notified) created(path string, e event) (_ event, more []event, ok bool) {
	err := n.w.Add(path)
	if err == nil {
		n.inner[path] = e
		more, err = n.enter(path, e.folder, e.name+"/")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the next session reports why
		return event{all: true, ended: true}, more, true
	}
	e.entered = true // also if the folder is gone again: files in it were removed without an event
	return e, more, true
}
