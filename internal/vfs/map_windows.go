package vfs

import (
	"errors"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapPage(f *os.File) (*page, error) {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READWRITE, 0, PageSize, nil)
	if err != nil {
		return nil, err
	}
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE, 0, 0, PageSize)
	if err != nil {
		return nil, errors.Join(err, windows.CloseHandle(h))
	}
	// The address is not Go memory; the indirection through a pointer to it satisfies vet.
	return newPage(*(**words)(unsafe.Pointer(&addr)), func() error {
		return errors.Join(windows.UnmapViewOfFile(addr), windows.CloseHandle(h))
	}), nil
}

// mapping is a copy of a file on the heap: a mapped file could not be replaced on Windows.
type mapping struct{ b []byte }

func (m *mapping) Bytes() []byte { return m.b }
func (m *mapping) Close() error  { m.b = nil; return nil }

func mapFile(f *os.File) (Mapping, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, st.Size()))
	if err != nil {
		return nil, err
	}
	return &mapping{b}, nil
}
