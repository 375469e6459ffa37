package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	limitWorkers = 2
	limitRound   = 4096 // number of files after which the file system is synced, while the next files are made
)

// syncLimit measures an append of 1 KB followed by fdatasync, repeatedly, within space to which zeros were written
// before.
func syncLimit(dir string, d time.Duration) (burst, error) {
	const space = 64 << 20
	f, err := writtenOut(filepath.Join(dir, "space"), space)
	if err != nil {
		return burst{}, err
	}
	defer f.Close()
	doc, at := newSource(1).next().JSON, int64(0)
	return during(1, d, space/docSize-1, func(int) error {
		if _, err := f.WriteAt(doc, at); err != nil {
			return err
		}
		at += int64(len(doc))
		return unix.Fdatasync(int(f.Fd()))
	})
}

// writtenOut makes a file of zeros that are on the disk.
func writtenOut(name string, size int) (*os.File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	zero := make([]byte, 1<<20)
	for left := size; left > 0 && err == nil; left -= len(zero) {
		_, err = f.Write(zero)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// fileLimits measures the system calls that create n files in a folder which has some files already, and those that
// replace n files, all durable at the end by a syncfs. It measures the calls for the files alone, and (with
// "+log") together with the calls that write the documents to the log before and to the index after, and that read
// the documents which are replaced.
func fileLimits(dir string, already, n int, withLog bool) (map[string]float64, error) {
	home := filepath.Join(dir, "memories")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(home)
	if err != nil {
		return nil, err
	}
	newFile := func(w int) (func(Doc) error, error) { return creator(dir, home, w) }
	exchange := func(w int) (func(Doc) error, error) { return replacer(dir, home, w, false) }
	src, out := newSource(uint64(len(entries))), map[string]float64{}
	for left := already; left > 0; left -= 10_000 {
		if _, err := filesRate(dir, src.docs(min(left, 10_000)), newFile, false); err != nil {
			return nil, err
		}
	}
	docs := src.docs(n)
	add := func(name string, docs []Doc, worker func(int) (func(Doc) error, error), all bool) error {
		s, err := filesRate(dir, docs, worker, all)
		out[name], out[name+".cpu"] = s.rate, s.cpu
		return err
	}
	if err := add("create", docs, newFile, false); err != nil {
		return nil, err
	}
	if err := add("replace", docs, exchange, false); err != nil || !withLog {
		return out, err
	}
	exchange = func(w int) (func(Doc) error, error) { return replacer(dir, home, w, true) }
	if err := add("create+log", src.docs(n), newFile, true); err != nil {
		return nil, err
	}
	return out, add("replace+log", docs, exchange, true)
}

// filesRate writes the documents with two workers.
func filesRate(dir string, docs []Doc, worker func(int) (func(Doc) error, error), all bool) (s settled, err error) {
	root, err := os.Open(dir)
	if err != nil {
		return s, err
	}
	defer root.Close()
	var l *logAndIndex
	if all {
		if l, err = newLogAndIndex(dir, len(docs)); err != nil {
			return s, err
		}
		defer l.close()
	}
	start, before := time.Now(), used()
	errs := make([]error, limitWorkers+2)
	var wg sync.WaitGroup
	var written atomic.Int64
	barriers, synced := make(chan struct{}, len(docs)), make(chan struct{})
	for w := range limitWorkers {
		wg.Go(func() {
			write, err := worker(w)
			for i := w; i < len(docs) && err == nil; i += limitWorkers {
				if err = write(docs[i]); written.Add(1)%limitRound == 0 {
					barriers <- struct{}{}
				}
			}
			errs[w] = err
		})
	}
	go func() {
		defer close(synced)
		for range barriers {
			if err := unix.Syncfs(int(root.Fd())); err != nil {
				errs[limitWorkers+1] = err
			}
		}
	}()
	if l != nil {
		wg.Go(func() { errs[limitWorkers] = l.log(docs) })
	}
	wg.Wait()
	close(barriers)
	if l != nil {
		err = l.index(len(docs))
	}
	<-synced
	errs = append(errs, err)
	errs = append(errs, unix.Syncfs(int(root.Fd())))
	if l != nil {
		errs = append(errs, l.finish(dir))
	}
	took, n := time.Since(start), float64(len(docs))
	return settled{rate: n / took.Seconds(), cpu: float64((used() - before).Nanoseconds()) / 1e3 / n}, errors.Join(errs...)
}

// logAndIndex makes the system calls that settled documents need besides those for their files: log writes of 64
// documents each with an fdatasync, in space to which zeros were written before; the lines of the index in a new
// file, which the syncfs makes durable; then the rename of that file, and the checkpoint.
type logAndIndex struct {
	space, table *os.File
	name         string
}

const (
	logGroup  = 64
	lineBytes = 450 // bytes of an index line, with the pair by which the index finds it by session
	frameMore = 450 // bytes of header and index line that the log stores with a document
)

func newLogAndIndex(dir string, n int) (l *logAndIndex, err error) {
	l = &logAndIndex{name: filepath.Join(dir, "tmp.index")}
	if l.space, err = writtenOut(filepath.Join(dir, "log"), n*(docSize+frameMore)+1<<20); err != nil {
		return nil, err
	}
	l.table, err = os.Create(l.name)
	return l, err
}

func (l *logAndIndex) log(docs []Doc) error {
	group, at := make([]byte, logGroup*(docSize+frameMore)), int64(0)
	for left := len(docs); left > 0; left -= logGroup {
		if _, err := l.space.WriteAt(group, at); err != nil {
			return err
		}
		at += int64(len(group))
		if err := unix.Fdatasync(int(l.space.Fd())); err != nil {
			return err
		}
	}
	return nil
}

func (l *logAndIndex) index(n int) error { return writeLines(l.table, n) }

// writeLines writes as many bytes as n lines of the index have.
func writeLines(f *os.File, n int) error {
	piece := make([]byte, 512<<10)
	for left := n * lineBytes; left > 0; left -= len(piece) {
		if _, err := f.Write(piece[:min(left, len(piece))]); err != nil {
			return err
		}
	}
	return nil
}

func (l *logAndIndex) finish(dir string) error {
	if err := unix.Rename(l.name, filepath.Join(dir, "index")); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return err
	}
	if _, err := l.space.WriteAt(make([]byte, 4096), 0); err != nil {
		return err
	}
	return unix.Fdatasync(int(l.space.Fd()))
}

func (l *logAndIndex) close() {
	l.space.Close()
	l.table.Close()
}

// creator returns a function that writes a temporary file in its worker's own folder, sets its time, and renames it.
func creator(dir, home string, w int) (func(Doc) error, error) {
	tmp := filepath.Join(dir, fmt.Sprint("tmp", w))
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(tmp, "new")
	return func(d Doc) error {
		fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		if err := fillFile(fd, d); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, filepath.Join(home, d.ID+".json"), unix.RENAME_NOREPLACE)
	}, nil
}

// fillFile writes a document to a file, sets the time of the file and closes it.
func fillFile(fd int, d Doc) error {
	_, err := unix.Pwrite(fd, d.JSON, 0)
	if err == nil {
		err = setTime(fd)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return err
}

// setTime sets a file's times with futimens: unix.Futimes would use /proc.
func setTime(fd int) error {
	ts := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: 1767323045, Nsec: 6000}}
	if _, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}

// replacer returns a function that replaces a document: it examines the existing file and exchanges it with a
// temporary file. The displaced file becomes the next temporary file, once a lease has shown that no process has it
// open, and fstat that it is the expected file. If a process opens the file later, the system sends SIGURG and not
// SIGIO, which would end this process. Closing the file ends the lease.
func replacer(dir, home string, w int, reads bool) (func(Doc) error, error) {
	tmp := filepath.Join(dir, fmt.Sprint("tmp", w))
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(tmp, fmt.Sprint("old", time.Now().UnixNano())) // the last one of a run stays leased
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	old := make([]byte, 2*docSize)
	return func(d Doc) error {
		place := filepath.Join(home, d.ID+".json")
		if reads {
			if err := readFile(place, old); err != nil {
				return err
			}
		}
		var st unix.Stat_t
		if err := unix.Lstat(place, &st); err != nil {
			return err
		}
		if err := fillFile(fd, d); err != nil {
			return err
		}
		if err := unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, place, unix.RENAME_EXCHANGE); err != nil {
			return err
		}
		if fd, err = unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGURG)); err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
			return fmt.Errorf("lease: %w", err)
		}
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Nlink != 1 || st.Size != int64(len(d.JSON)) {
			return fmt.Errorf("%s is not the file that was replaced", name)
		}
		return nil
	}, nil
}

// readFile makes the system calls by which a reader can be sure that a file had this name while it was read, even if
// files are replaced and reused at the same time.
func readFile(name string, b []byte) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if err := unix.Lstat(name, &st); err != nil {
		return err
	}
	if _, err := unix.Pread(fd, b[:st.Size], 0); err != nil {
		return err
	}
	return unix.Fstat(fd, &st)
}
