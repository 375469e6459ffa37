package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
)

// probeRounds is the number of times that the two writers of the probe compete.
const probeRounds = 64

// probe returns an error if two writers can both add the same entry to the file system. In each round two writers
// first write half of a file each; then both complete their files and rename them to the same name at the same time.
// Exactly one rename may succeed, the bytes of its file must be there, and they must stay when a third writer tries
// later. If the writers ran one after the other, probe would accept file systems that look up the name first and
// replace the file afterwards. At the end probe syncs files and folders, which some network file systems refuse.
func (r *Remote) probe(ctx context.Context) error {
	unfit := func(why string, err error) error {
		if vfs.IsDiskFull(err) {
			return vfs.Failed("testing", r.dir, err)
		}
		if err != nil {
			why += ": " + err.Error()
		}
		kind := "unknown"
		if v, err := r.o.FS.Volume(r.dir); err == nil {
			kind = v.Type
		}
		return fmt.Errorf("%s (file system %s) is %w: %s -> use a folder on a local disk or on NFS", r.dir, kind,
			remote.ErrUnsuitable, why)
	}
	folder, err := r.temporary()
	if err != nil {
		return err
	}
	if err := r.o.FS.Mkdir(folder, r.o.FolderMode); err != nil {
		return vfs.Failed("creating", folder, err)
	}
	defer r.clear(folder)
	at := func(name string, round int) string { return fmt.Sprintf("%s/%s%d", folder, name, round) }
	for round := range probeRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		one, err := r.createHalf(at("a", round))
		if err != nil {
			return err
		}
		two, err := r.createHalf(at("b", round))
		if err != nil {
			return errors.Join(err, one.Close())
		}
		name := at("entry", round)
		first, second := r.compete(one, at("a", round), two, at("b", round), name)
		switch {
		case first == nil && second == nil:
			return unfit("two writers created the same file", nil)
		case first != nil && !errors.Is(first, fs.ErrExist):
			return unfit("a writer cannot create a file with its content", first)
		case second != nil && !errors.Is(second, fs.ErrExist):
			return unfit("a writer cannot create a file with its content", second)
		case first != nil && second != nil:
			return unfit("neither of two writers created a file", first)
		}
		won, lost := at("a", round), at("b", round)
		if first != nil {
			won, lost = lost, won
		}
		if err := r.o.FS.RenameNew(lost, name); !errors.Is(err, fs.ErrExist) {
			return unfit("a later writer replaced a file, or did not find the file", err)
		}
		b, err := vfs.ReadFile(r.o.FS, name, 1<<20)
		if err != nil {
			return unfit("a new file cannot be read", err)
		}
		if !bytes.Equal(b, halves(won)) {
			return unfit("a new file has the bytes of another writer", nil)
		}
		names, err := r.o.FS.ReadDir(folder)
		if err != nil || !slices.Contains(names, fmt.Sprintf("entry%d", round)) {
			return unfit("a new file is not listed", err)
		}
	}
	if err := r.o.FS.SyncDir(folder); err != nil {
		return unfit("a folder cannot be synced", err)
	}
	return nil
}

// halves returns the content of the probe's file with this name. A writer first writes the first half of the content,
// and later the second half.
func halves(name string) []byte { return bytes.Repeat([]byte(name+"\n"), 512) }

// createHalf creates a file of the probe, and writes the first half of its content (see halves).
func (r *Remote) createHalf(name string) (vfs.File, error) {
	f, err := r.o.FS.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, r.o.FileMode)
	if err != nil {
		return nil, vfs.Failed("creating", name, err)
	}
	b := halves(name)
	if _, err := f.WriteAt(b[:len(b)/2], 0); err != nil {
		return nil, vfs.Failed("writing", name, errors.Join(err, f.Close()))
	}
	return f, nil
}

// compete completes the files one and two, whose names are a and b, and renames both to name at the same time. first
// and second are the errors for the two files.
func (r *Remote) compete(one vfs.File, a string, two vfs.File, b, name string) (first, second error) {
	var ready, done sync.WaitGroup
	ready.Add(2)
	complete := func(f vfs.File, own string, result *error) {
		b := halves(own)
		_, err := f.WriteAt(b[len(b)/2:], int64(len(b)/2))
		err = errors.Join(err, f.Sync(), f.Close())
		ready.Done()
		ready.Wait()
		if *result = err; err == nil {
			*result = r.o.FS.RenameNew(own, name)
		}
	}
	done.Go(func() { complete(one, a, &first) })
	done.Go(func() { complete(two, b, &second) })
	done.Wait()
	return first, second
}

// clear removes the temporary folder of the probe with the files in it. It ignores errors.
func (r *Remote) clear(folder string) {
	names, _ := r.o.FS.ReadDir(folder)
	for _, name := range names {
		_ = r.o.FS.Remove(folder + "/" + name)
	}
	_ = r.o.FS.Remove(folder)
}
