package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
)

// pageSize is the shared page's: Words words.
const pageSize = Words * 8

// page is the mapped page.
type page struct {
	words *[Words]atomic.Uint64
	unmap func() error
}

func (p *page) Load(word int) uint64     { return p.words[word].Load() }
func (p *page) Store(word int, v uint64) { p.words[word].Store(v) }
func (p *page) Close() error             { return p.unmap() }

func (p *page) CompareAndSwap(word int, old, new uint64) bool {
	return p.words[word].CompareAndSwap(old, new)
}

// openShared writes a new page in place: a caller that asks for one knows that no process is
// attached, and the inode stays what it was.
func openShared(name string, create bool, perm fs.FileMode) (Shared, error) {
	return openSharedBy(nil, nil, name, create, perm)
}

func openSharedBy(open opener, p *patience, name string, create bool, perm fs.FileMode) (Shared, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	f, err := openFileBy(open, p, name, flag, perm)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	if create {
		if _, err := f.WriteAt(make([]byte, pageSize), 0); err != nil {
			return nil, err
		}
		if err := f.Truncate(pageSize); err != nil {
			return nil, err
		}
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() < pageSize {
		return nil, pathError("map", name, fmt.Errorf("%w: no page of %d bytes", fs.ErrInvalid, pageSize))
	}
	mapped, err := mapPage(f)
	if err != nil {
		return nil, pathError("map", name, err)
	}
	return mapped, nil
}
