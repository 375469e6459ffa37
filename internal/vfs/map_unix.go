//go:build linux || darwin

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapPage(f *os.File) (*page, error) {
	b, err := mmap(f, PageSize, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	return newPage((*words)(unsafe.Pointer(&b[0])), func() error { return unix.Munmap(b) }), nil // a second: EINVAL
}

type mapping struct{ b []byte }

func (m *mapping) Bytes() []byte { return m.b }

func (m *mapping) Close() error {
	b := m.b
	m.b = nil
	if len(b) == 0 {
		return nil
	}
	return unix.Munmap(b)
}

func mapFile(f *os.File) (Mapping, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, bare(err)
	}
	if !st.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	if st.Size() == 0 { // mmap refuses an empty range
		return &mapping{}, nil
	}
	if int64(int(st.Size())) != st.Size() {
		return nil, errors.ErrUnsupported
	}
	b, err := mmap(f, int(st.Size()), unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	return &mapping{b}, nil
}

func mmap(f *os.File, size, prot int) (b []byte, err error) {
	err = control(f, func(fd uintptr) (err error) {
		b, err = unix.Mmap(int(fd), 0, size, prot, unix.MAP_SHARED)
		return err
	})
	return b, err
}
