package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// parkedFor is the time for which a parked file is kept before it is removed, if the system does not support leases.
const parkedFor = time.Minute

// believed describes a replaced file as the store knew it when it parked the file. The description is part of the
// parked file's name.
type believed struct {
	folder, name string
	size         int64 // expected size; -1: the store did not write the file, whatever its size
	mtime        time.Time
}

// parkedName returns the name of a parked file. parseParked parses such a name. The package comment describes the
// format.
func (b believed) parkedName(since time.Time, token string, n uint64) string {
	mtime := int64(0)
	if b.size >= 0 {
		mtime = b.mtime.UnixNano()
	}
	return fmt.Sprintf("%s@%s@%d@%d@%d@%s-%d", b.folder, ParkedName(b.name), b.size, mtime, since.Unix(), token, n)
}

func parseParked(s string) (b believed, since time.Time, ok bool) {
	parts := strings.Split(s, "@")
	if len(parts) != 6 {
		return b, since, false
	}
	size, err1 := strconv.ParseInt(parts[2], 10, 64)
	mtime, err2 := strconv.ParseInt(parts[3], 10, 64)
	sec, err3 := strconv.ParseInt(parts[4], 10, 64)
	b = believed{folder: parts[0], name: unparked(parts[1]), size: size, mtime: time.Unix(0, mtime)}
	return b, time.Unix(sec, 0), err1 == nil && err2 == nil && err3 == nil
}

// parkedList is the list of replaced files that other processes may have open. The list is read from the disk once, so
// it includes the files of processes that died.
type parkedList struct {
	f      *Flusher
	mu     sync.Mutex
	names  []string
	loaded bool
	seq    uint64
	dirty  bool   // the folder has entries that are not durable
	moved  []Edit // entries that were at the path of the parking folder and were moved away, until they are reported
}

func (p *parkedList) dir() string { return p.f.o.path(tempFolder, parkedFolder) }

// add parks the file at path: it moves the file to the folder of parked files, under a name that contains b.
func (p *parkedList) add(path string, b believed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(); err != nil {
		return err
	}
	if err := p.clear(); err != nil {
		return err
	}
	if err := p.f.o.makeFolder(tempFolder, parkedFolder); err != nil {
		return err
	}
	for {
		p.seq++
		name := b.parkedName(p.f.o.Clock(), p.f.o.Token, p.seq)
		err := p.f.o.FS.RenameNew(path, filepath.Join(p.dir(), name))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return failure("park", p.f.o.rel(path), err)
		}
		p.names = append(p.names, name)
		p.dirty = true
		return nil
	}
}

// Parked returns the number of parked files that this process knows of.
func (f *Flusher) Parked() int {
	f.parked.mu.Lock()
	defer f.parked.mu.Unlock()
	return len(f.parked.names)
}

// clear moves away anything that is at the path of the folder of parked files and is not a folder.
func (p *parkedList) clear() error {
	moved, err := p.f.ClearTemp(parkedFolder)
	p.moved = append(p.moved, moved...)
	return err
}

func (p *parkedList) load() error {
	if p.loaded {
		return nil
	}
	if err := p.clear(); err != nil {
		return err
	}
	names, err := p.f.o.FS.ReadDir(p.dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure("list", p.f.o.rel(p.dir()), err)
	}
	slices.Sort(names)
	p.names, p.loaded = names, true
	p.dirty = p.dirty || len(names) > 0 // the process that parked them may have been killed before it synced
	return nil
}

// sync makes the names of parked files durable: an editor that has saved into one of these files may have told its user
// that the save succeeded.
func (p *parkedList) sync() error {
	if !p.dirty {
		return nil
	}
	if err := p.f.o.FS.SyncDir(p.dir()); err != nil {
		return syncFailure(p.f.o.rel(p.dir()), err)
	}
	p.dirty = false
	return nil
}

// retry examines each parked file again, and reports edits by other programs. If a file cannot be handled now, the next
// round tries again; no other work depends on the file.
func (p *parkedList) retry(report func(Edit)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(); err != nil {
		return err
	}
	for _, e := range p.moved {
		report(e)
	}
	p.moved = nil
	p.names = slices.DeleteFunc(p.names, func(name string) bool { return p.retryOne(name, report) })
	return nil
}

func (p *parkedList) retryOne(name string, report func(Edit)) (gone bool) {
	b, since, known := parseParked(name)
	if !known {
		b = believed{name: name, size: -1}
	}
	path := filepath.Join(p.dir(), name)
	f, writable, err := openDisplaced(p.f.o.FS, path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	granted, err := f.Lease()
	noLeases := errors.Is(err, errors.ErrUnsupported)
	if err != nil && !noLeases {
		return false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode.IsRegular() {
		return false
	}
	if info.Size != 0 && (info.Size != b.size || !info.Mtime.Equal(b.mtime)) {
		k, err := p.f.quarantine.take(f, path, b.note(), granted)
		if err != nil {
			return false
		}
		report(Edit{Change: -1, Folder: b.folder, Name: b.name, Where: k.where, Info: k.info})
		return true
	}
	if p.f.keeps() {
		return false // it is left to the purge
	}
	// A clock that was set back does not keep the file forever.
	age := p.f.o.Clock().Sub(since)
	if granted || noLeases && (age >= parkedFor || age < 0) {
		// The program that had the file open may have kept it from a purge, which finished without it, or
		// failed. Where leases are not supported, all displaced files are parked: of these only the ones
		// that were to be overwritten are.
		if (granted && writable || isDoomed(b.name)) && info.Nlink == 1 && vfs.Zero(f, 0) != nil {
			return false
		}
		return ignoreMissing(p.f.o.FS.Remove(path)) == nil
	}
	return false
}

func (b believed) note() Note {
	n := Note{From: b.name,
		Why: "another program saved the file after the store had replaced it, or the store never examined the file"}
	if b.folder != "" {
		n.From = b.folder + "/" + b.name
	}
	if b.size >= 0 {
		n.Expected = &Expected{Size: b.size, Mtime: b.mtime.UTC()}
	}
	return n
}
