package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// ReplaceFile lets write fill a file that takes its name when it is whole. What
// is no ordinary file (a pipe, /dev/full) is written to as it is.
func ReplaceFile(name string, write func(io.Writer) error) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return fill(f, write)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	if err := fill(f, write); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), name)
}

func fill(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 256<<10)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	if info, serr := f.Stat(); err == nil && serr == nil && info.Mode().IsRegular() {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
