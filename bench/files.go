package main

import (
	"os"
	"path/filepath"
)

// files stores each document in a file, as careful programs do: write a temporary file, fsync, rename, fsync the
// folder. A batch syncs the folder once, and is not atomic.
type files struct {
	dir    string
	folder *os.File
}

func (f *files) Name() string       { return "one file each, fsync" }
func (f *files) MultiProcess() bool { return true }

func (f *files) Open(dir string) (err error) {
	f.dir = dir
	f.folder, err = os.Open(dir)
	return err
}

func (f *files) write(d Doc, durable bool) error {
	tmp, err := os.CreateTemp(f.dir, "tmp-*")
	if err != nil {
		return err
	}
	if _, err = tmp.Write(d.JSON); err == nil && durable {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(f.dir, d.ID+".json"))
}

func (f *files) Put(d Doc) error {
	if err := f.write(d, true); err != nil {
		return err
	}
	return f.folder.Sync()
}

func (f *files) PutBatch(docs []Doc) error {
	for _, d := range docs {
		if err := f.write(d, true); err != nil {
			return err
		}
	}
	return f.folder.Sync()
}

// Fill writes files without syncing them.
func (f *files) Fill(docs []Doc) error {
	for _, d := range docs {
		if err := f.write(d, false); err != nil {
			return err
		}
	}
	return nil
}

// Flush does nothing: every put is already a durable file.
func (f *files) Flush() error { return nil }

func (f *files) Get(id string) ([]byte, error) { return os.ReadFile(filepath.Join(f.dir, id+".json")) }

func (f *files) Close() error { return f.folder.Close() }
