package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"
)

// PageSize is the size of the shared page in bytes.
const PageSize = Words * 8

// words is the content of a page.
type words [Words]atomic.Uint64

// page is a mapped page. Other programs can change the file behind the mapping: cp -a or a shell redirection truncates
// it in place, and then each access faults, even if other processes extend the file again. An unhandled fault ends the
// process (SIGBUS). So each access is guarded, as by Guard. After the first fault the page consists of the words that
// this process saw last, in its own memory: its stores no longer reach other processes, no word takes an older value,
// and IsCut reports the fault.
type page struct {
	words atomic.Pointer[words] // the mapping, or the field seen after the first fault
	seen  words                 // the words as this process loaded or stored them last
	cut   atomic.Bool
	unmap func() error
}

// newPage returns a page for a mapping. It reads every word once, so that p.seen has the values of all words.
func newPage(mapped *words, unmap func() error) *page {
	p := &page{unmap: unmap}
	p.words.Store(mapped)
	for word := range Words {
		p.Load(word)
	}
	return p
}

func (p *page) Load(word int) uint64 {
	v, ok := loadWord(p.words.Load(), word)
	if !ok {
		return p.fall()[word].Load()
	}
	p.see(word, v)
	return v
}

func (p *page) Store(word int, v uint64) {
	if !storeWord(p.words.Load(), word, v) {
		p.fall()[word].Store(v)
		return
	}
	p.see(word, v)
}

func (p *page) CompareAndSwap(word int, old, new uint64) bool {
	swapped, ok := swapWord(p.words.Load(), word, old, new)
	if !ok {
		return p.fall()[word].CompareAndSwap(old, new)
	}
	if swapped {
		p.see(word, new)
	}
	return swapped
}

func (p *page) Close() error {
	p.words.Store(&p.seen) // the addresses may be reused by another mapping soon
	return p.unmap()
}

// see records the value of a word in p.seen. Most words do not change from one access to the next, so see often has
// nothing to write.
func (p *page) see(word int, v uint64) {
	if p.seen[word].Load() != v {
		p.seen[word].Store(v)
	}
}

// fall is called after a fault. It makes the page use the process's own copy of the words instead of the mapping.
func (p *page) fall() *words {
	p.cut.Store(true)
	p.words.Store(&p.seen)
	return &p.seen
}

// IsCut reports whether an access to a page has found that the file behind the page was truncated, or that its medium
// has failed. After that the page is private to this process.
func IsCut(s Shared) bool {
	p, ok := s.(*page)
	return ok && p.cut.Load()
}

// The accesses that may fault. ok is false after a fault.

func loadWord(m *words, word int) (v uint64, ok bool) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		if debug.SetPanicOnFault(before); !ok {
			caught(recover())
		}
	}()
	v = m[word].Load()
	return v, true
}

func storeWord(m *words, word int, v uint64) (ok bool) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		if debug.SetPanicOnFault(before); !ok {
			caught(recover())
		}
	}()
	m[word].Store(v)
	return true
}

func swapWord(m *words, word int, old, new uint64) (swapped, ok bool) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		if debug.SetPanicOnFault(before); !ok {
			caught(recover())
		}
	}()
	swapped = m[word].CompareAndSwap(old, new)
	return swapped, true
}

// caught panics again with r, unless r is a memory fault.
func caught(r any) {
	if r != nil && !isFault(r) {
		panic(r)
	}
}

// openShared opens and maps a shared page. If create is true, it writes a new page into the existing file and so keeps
// the inode. The caller must then know that no process has the page mapped.
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
	defer f.Close() // the mapping stays valid
	if create {
		if _, err := f.WriteAt(make([]byte, PageSize), 0); err != nil {
			return nil, err
		}
		if err := f.Truncate(PageSize); err != nil {
			return nil, err
		}
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() < PageSize {
		return nil, pathError("map", name, fmt.Errorf("%w: not a regular file, or shorter than a page (%d bytes)",
			fs.ErrInvalid, PageSize))
	}
	mapped, err := mapPage(f)
	if err != nil {
		return nil, pathError("map", name, err)
	}
	return mapped, nil
}
