package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const limitWorkers = 2

// syncLimit is an append of 1 KB and an fdatasync, again and again, within
// space that was written out before.
func syncLimit(dir string, d time.Duration) (burst, error) {
	f, err := os.Create(filepath.Join(dir, "space"))
	if err != nil {
		return burst{}, err
	}
	defer f.Close()
	const space = 64 << 20
	zero := make([]byte, 1<<20)
	for range space / len(zero) {
		if _, err := f.Write(zero); err != nil {
			return burst{}, err
		}
	}
	if err := f.Sync(); err != nil {
		return burst{}, err
	}
	doc, at := newSource(1).next().JSON, int64(0)
	return during(1, d, space/docSize-1, func(int) error {
		if _, err := f.WriteAt(doc, at); err != nil {
			return err
		}
		at += int64(len(doc))
		return unix.Fdatasync(int(f.Fd()))
	})
}

// fileLimits is how many files a second the bare calls create, and then
// replace, durable at the end by one syncfs, in a folder that has some already.
func fileLimits(dir string, already, n int) (create, replace float64, err error) {
	home := filepath.Join(dir, "memories")
	if err := os.Mkdir(home, 0o700); err != nil {
		return 0, 0, err
	}
	newFile := func(w int) (func(Doc) error, error) { return creator(dir, home, w) }
	src := newSource(2)
	for left := already; left > 0; left -= 10_000 {
		if _, err := filesRate(dir, src.docs(min(left, 10_000)), newFile); err != nil {
			return 0, 0, err
		}
	}
	docs := src.docs(n)
	if create, err = filesRate(dir, docs, newFile); err != nil {
		return 0, 0, err
	}
	replace, err = filesRate(dir, docs, func(w int) (func(Doc) error, error) { return replacer(dir, home, w) })
	return create, replace, err
}

func filesRate(dir string, docs []Doc, worker func(int) (func(Doc) error, error)) (float64, error) {
	root, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	start := time.Now()
	errs := make([]error, limitWorkers)
	var wg sync.WaitGroup
	for w := range limitWorkers {
		wg.Go(func() {
			write, err := worker(w)
			for i := w; i < len(docs) && err == nil; i += limitWorkers {
				err = write(docs[i])
			}
			errs[w] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	if err := unix.Syncfs(int(root.Fd())); err != nil {
		return 0, err
	}
	return float64(len(docs)) / time.Since(start).Seconds(), nil
}

// creator writes a temp file in the worker's own folder, sets its time, and
// renames it.
func creator(dir, home string, w int) (func(Doc) error, error) {
	tmp := filepath.Join(dir, fmt.Sprint("tmp", w))
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(tmp, "0")
	return func(d Doc) error {
		fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		if err := fillFile(fd, d); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, filepath.Join(home, d.ID+".json"), unix.RENAME_NOREPLACE)
	}, nil
}

// fillFile writes and closes.
func fillFile(fd int, d Doc) error {
	_, err := unix.Pwrite(fd, d.JSON, 0)
	if err == nil {
		err = unix.Ftruncate(fd, int64(len(d.JSON)))
	}
	if err == nil {
		err = setTime(fd)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return err
}

func setTime(fd int) error {
	at := unix.NsecToTimeval(1767323045000006000)
	return unix.Futimes(fd, []unix.Timeval{at, at})
}

// replacer exchanges: the displaced file is the next temp, once a lease has
// shown that nobody has it open, and a look that it is the one expected.
func replacer(dir, home string, w int) (func(Doc) error, error) {
	tmp := filepath.Join(dir, fmt.Sprint("tmp", w))
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(tmp, "0")
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return func(d Doc) error {
		if err := fillFile(fd, d); err != nil {
			return err
		}
		if err := unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, filepath.Join(home, d.ID+".json"), unix.RENAME_EXCHANGE); err != nil {
			return err
		}
		if fd, err = unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
			return fmt.Errorf("lease: %w", err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Nlink != 1 || st.Size != int64(len(d.JSON)) {
			return fmt.Errorf("%s is not what was displaced", name)
		}
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return err
	}, nil
}
