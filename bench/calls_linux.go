package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

func callsEngine() []func() Engine { return []func() Engine{func() Engine { return &calls{} }} }

// calls makes the system calls that Varve makes for puts under a continuous load, and computes nothing. It writes
// and syncs the log in groups, within space to which zeros were written before; then it writes each document to a
// file, in rounds, and makes the next round while the previous one is synced; and it writes the lines of the index for
// each 64 MiB of log. It makes no word index, merges no index, and reads nothing back. Writers wait while more than
// callsBehind documents of the log are not in files, so that the measured rate is one that lasts.
type calls struct {
	dir   string
	root  *os.File
	in    chan *callsPut
	ended sync.WaitGroup

	mu     sync.Mutex
	room   sync.Cond
	behind []Doc // documents in the log that are not in files yet
	closed bool
	err    error // first error of the goroutine that makes files

	segment      *os.File // file of the current segment of the log
	at           int64
	space        chan made // the next segment, made in advance
	workers      []func(Doc) error
	lines, bytes int // index lines to write, and bytes of log, since the index was last written
}

type callsPut struct {
	docs []Doc
	done chan error
}

type made struct {
	f   *os.File
	err error
}

const (
	callsBehind  = 64 << 20 / (docSize + frameMore)
	callsSegment = 64 << 20
	callsGroup   = 1 << 20 // maximum number of bytes of log that one sync covers
)

func (c *calls) Name() string       { return "the same calls" }
func (c *calls) MultiProcess() bool { return false }

func (c *calls) Open(dir string) (err error) {
	c.dir = dir
	home := filepath.Join(dir, "memories")
	if err = os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if c.root, err = os.Open(dir); err != nil {
		return err
	}
	for w := range limitWorkers {
		worker, err := creator(dir, home, w)
		if err != nil {
			return err
		}
		c.workers = append(c.workers, worker)
	}
	c.room.L = &c.mu
	c.in, c.space = make(chan *callsPut, 1024), make(chan made, 1)
	stop := make(chan struct{})
	c.ended.Go(func() { c.makeSpace(stop) })
	next := <-c.space
	if c.segment = next.f; next.err != nil {
		close(stop)
		return next.err
	}
	c.ended.Go(func() {
		c.log()
		close(stop)
	})
	c.ended.Go(c.file)
	return nil
}

// makeSpace makes the segments of the log, files of zeros, in advance.
func (c *calls) makeSpace(stop chan struct{}) {
	for n := 0; ; n++ {
		f, err := writtenOut(filepath.Join(c.dir, fmt.Sprint("log", n)), callsSegment)
		select {
		case c.space <- made{f, err}:
		case <-stop:
			f.Close() // nil where there is an error
			return
		}
	}
}

func (c *calls) Put(d Doc) error { return c.PutBatch([]Doc{d}) }

func (c *calls) PutBatch(docs []Doc) error {
	c.mu.Lock()
	for len(c.behind) > callsBehind && c.err == nil {
		c.room.Wait()
	}
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return err
	}
	p := &callsPut{docs, make(chan error, 1)}
	c.in <- p
	return <-p.done
}

// log writes waiting documents to the log in groups, until c.in is closed.
func (c *calls) log() {
	buf := make([]byte, 2*callsGroup)
	for p := range c.in {
		group, n := []*callsPut{p}, len(p.docs)
		for more := true; more && n*(docSize+frameMore) < callsGroup; {
			select {
			case q, ok := <-c.in:
				if more = ok; ok {
					group, n = append(group, q), n+len(q.docs)
				}
			default:
				more = false
			}
		}
		size := n * (docSize + frameMore)
		if len(buf) < size {
			buf = make([]byte, 2*size)
		}
		err := c.append(buf[:size])
		c.mu.Lock()
		for _, q := range group {
			c.behind = append(c.behind, q.docs...)
		}
		c.bytes += size
		c.room.Broadcast()
		c.mu.Unlock()
		for _, q := range group {
			q.done <- err
		}
	}
}

func (c *calls) append(b []byte) error {
	if c.at+int64(len(b)) > callsSegment {
		c.segment.Close()
		next := <-c.space
		if next.err != nil {
			return next.err
		}
		c.segment, c.at = next.f, 0
	}
	if _, err := c.segment.WriteAt(b, c.at); err != nil {
		return err
	}
	c.at += int64(len(b))
	return unix.Fdatasync(int(c.segment.Fd()))
}

// file makes the files of documents, and syncs each round while the next one is made.
func (c *calls) file() {
	mark, err := os.Create(filepath.Join(c.dir, "checkpoint"))
	if err != nil {
		c.fail(err)
		return
	}
	defer mark.Close()
	synced := make(chan error, 1)
	synced <- nil
	for {
		docs, index := c.due()
		if docs == nil {
			break
		}
		err := c.round(docs)
		err = errors.Join(err, <-synced)
		if err != nil {
			c.fail(err)
			synced <- err
			break
		}
		go func() {
			err := unix.Syncfs(int(c.root.Fd()))
			if err == nil {
				_, err = mark.WriteAt(make([]byte, 4096), 0)
			}
			if err == nil {
				err = unix.Fdatasync(int(mark.Fd()))
			}
			synced <- err
		}()
		if c.lines += len(docs); index {
			if err := c.index(); err != nil {
				c.fail(err)
				break
			}
		}
	}
	c.fail(<-synced)
}

// due waits for the documents of a round, and reports whether the index must be written after it.
func (c *calls) due() (docs []Doc, index bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.behind) == 0 && !c.closed {
		c.room.Wait()
	}
	n := min(len(c.behind), limitRound)
	if n == 0 {
		return nil, false
	}
	docs, c.behind = c.behind[:n:n], c.behind[n:]
	if index = c.bytes > callsSegment; index {
		c.bytes = 0
	}
	c.room.Broadcast()
	return docs, index
}

func (c *calls) round(docs []Doc) error {
	errs := make([]error, len(c.workers))
	var wg sync.WaitGroup
	for w, write := range c.workers {
		wg.Go(func() {
			for i := w; i < len(docs) && errs[w] == nil; i += len(c.workers) {
				errs[w] = write(docs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// index writes index lines for the documents that were put into files since the last call.
func (c *calls) index() error {
	name := filepath.Join(c.dir, "tmp.index")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = writeLines(f, c.lines)
	c.lines = 0
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(name, filepath.Join(c.dir, "index"))
}

func (c *calls) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.room.Broadcast()
}

func (c *calls) Get(id string) ([]byte, error) {
	return os.ReadFile(filepath.Join(c.dir, "memories", id+".json"))
}

// Close makes the files of all remaining documents.
func (c *calls) Close() error {
	close(c.in)
	c.mu.Lock()
	c.closed = true
	c.room.Broadcast()
	c.mu.Unlock()
	c.ended.Wait()
	close(c.space)
	for ahead := range c.space {
		ahead.f.Close()
	}
	return errors.Join(c.err, c.segment.Close(), c.root.Close())
}
