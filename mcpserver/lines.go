package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"time"
)

type input struct {
	line  []byte
	large int64 // what of it counts as bytes in flight
	err   error
}

// small is how many bytes in flight it counts as besides large.
func (in input) small() int64 {
	if in.large > 0 {
		return queuedEach
	}
	return int64(len(in.line)) + queuedEach
}

// longer is from where on a line is a large one: it is read when there is room for it. Shorter
// ones are always read, for they may give up what takes the room.
const longer = 64 << 10

// readLines hands the lines of the input on until it ends.
func (c *connection) readLines() {
	r := bufio.NewReaderSize(c.in, longer)
	for {
		line, err := readLine(r, c.waitForRoom)
		in := input{line: line, err: err}
		if len(line) > longer {
			in.large = int64(cap(line))
			c.holdsLarge(in.large)
		}
		if len(bytes.TrimSpace(line)) > 0 || err != nil {
			select {
			case c.lines <- in:
			case <-c.closed:
				return
			}
		} else {
			c.holdsLarge(-in.large)
		}
		if err != nil && !isLong(err) {
			return
		}
	}
}

// readLine is the next line; io.EOF comes alone. Of one that is too long nothing is kept,
// and a *long comes instead.
func readLine(r *bufio.Reader, room func()) ([]byte, error) {
	var line []byte
	var over *long
	for {
		part, err := r.ReadSlice('\n')
		if len(line) == longer && len(part) > 0 { // the first piece is a full one
			room()
		}
		switch {
		case over != nil:
			over.read(part)
		case len(line)+len(part) > MaxLine:
			over = &long{}
			over.read(line)
			over.read(part)
			line = nil
		default:
			line = grown(line, len(part))
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case over != nil && (err == nil || errors.Is(err, io.EOF)):
			return nil, over
		case errors.Is(err, io.EOF) && len(line) > 0:
			return fitted(line), nil // the last one has no end
		}
		return fitted(line), err
	}
}

// grown makes place for n more bytes. Beyond 16 MiB a line gets all that it may ever need: the
// system gives memory only for what is written to, and nothing is copied over again.
func grown(line []byte, n int) []byte {
	if len(line)+n <= cap(line) {
		return line
	}
	to := max(2*cap(line), len(line)+n)
	if to > 16<<20 {
		to = MaxLine
	}
	return slices.Grow(line, to-len(line))
}

// fitted gives back what a line does not need, where that is much.
func fitted(line []byte) []byte {
	if cap(line) > 2*len(line) {
		return bytes.Clone(line)
	}
	return line
}

func isLong(err error) bool { return errors.As(err, new(*long)) }

// How much may be in flight: what has come in and is not answered. A client that sends more
// waits until its answers are read.
const (
	maxQueued = 32 << 20 // bytes of lines that are not large, with queuedEach for each
	maxLarge  = 4 << 20  // of large ones, when one more is read

	queuedEach = 2 << 10
)

// lookEvery is how often a server that does not read looks whether its client is still there.
const lookEvery = 250 * time.Millisecond

// waitForRoom waits until one more large line may be read.
func (c *connection) waitForRoom() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		c.mu.Lock()
		full := c.large > maxLarge
		c.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-c.room:
		case <-c.closed:
			return
		case <-look.C:
			c.lookForEnd()
		}
	}
}

// holdsLarge counts bytes of large lines.
func (c *connection) holdsLarge(n int64) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	c.large += n
	c.mu.Unlock()
	signal(c.room)
}

// signal never waits; the waiting goroutine looks at what has changed.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
