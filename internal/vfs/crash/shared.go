package crash

import (
	"encoding/binary"
	"io/fs"
	"os"
	"syscall"

	"github.com/varve-db/varve/internal/vfs"
)

const sharedSize = vfs.Words * 8

// shared is a mapped page. Each store of a word is a pending write of its file.
type shared struct{ f *file }

func (p *Process) OpenShared(name string, create bool, perm fs.FileMode) (vfs.Shared, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	var f *file
	err := p.do("open", name, func() (err error) {
		f, err = p.openFile(name, flag, perm)
		if err == nil && create {
			_, err = f.in.write(p.d, make([]byte, sharedSize), 0)
			if err == nil && f.in.cache.size != sharedSize {
				err = f.in.truncate(p.d, sharedSize)
			}
		}
		if err == nil && f.in.cache.size < sharedSize {
			err = syscall.EINVAL
		}
		if err != nil && f != nil {
			p.d.forget(f)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &shared{f}, nil
}

func (s *shared) do(run func()) {
	d := s.f.p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.f.p.dead || s.f.closed {
		return // a dead process reads zeros and changes nothing
	}
	run()
}

func (s *shared) load(word int) uint64 {
	var b [8]byte
	s.f.in.cache.read(b[:], int64(word)*8)
	return binary.LittleEndian.Uint64(b[:])
}

func (s *shared) store(word int, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	// The page needs no space: it was written completely when the file was created.
	s.f.in.write(s.f.p.d, b[:], int64(word)*8)
}

func (s *shared) Load(word int) (v uint64) {
	s.do(func() { v = s.load(word) })
	return v
}

func (s *shared) Store(word int, v uint64) {
	s.do(func() { s.store(word, v) })
}

func (s *shared) CompareAndSwap(word int, old, new uint64) (swapped bool) {
	s.do(func() {
		if swapped = s.load(word) == old; swapped {
			s.store(word, new)
		}
	})
	return swapped
}

func (s *shared) Close() error {
	return s.f.Close()
}
