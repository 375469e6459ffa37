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
	large int64 // number of bytes of a large line that count as in flight; 0 for other lines
	err   error
}

// small returns the number of bytes with which the line counts against the limit maxQueued while the line is in
// flight: for a large line only queuedEach, because the bytes of the line count against maxLarge.
func (in input) small() int64 {
	if in.large > 0 {
		return queuedEach
	}
	return int64(len(in.line)) + queuedEach
}

// longer is the length in bytes above which a line is large. A large line is read only when there is room for it among
// the calls in flight. Shorter lines are always read, because one of them may cancel a call and so make room.
const longer = 64 << 10

// readLines reads the input line by line, and sends the lines to the channel c.lines until the input ends.
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

// readLine returns the next line, or io.EOF at the end of the input. If a line is too long, readLine skips it and
// returns a *long, which has the id of the call, as the error. It calls room before it reads a large line.
func readLine(r *bufio.Reader, room func()) ([]byte, error) {
	var line []byte
	var over *long
	for {
		part, err := r.ReadSlice('\n')
		if len(line) == longer && len(part) > 0 { // the first piece fills the buffer exactly
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
			return fitted(line), nil // the last line has no line feed
		}
		return fitted(line), err
	}
}

// grown returns line with capacity for n more bytes. If the line has more than 16 MiB, it gets the maximum capacity at
// once, so that nothing is copied again. The unused part costs nothing, because the system provides memory only for
// pages that are written.
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

// fitted returns line if at most half of its capacity is unused, and otherwise a copy with less capacity.
func fitted(line []byte) []byte {
	if cap(line) > 2*len(line) {
		return bytes.Clone(line)
	}
	return line
}

func isLong(err error) bool { return errors.As(err, new(*long)) }

// Limits of the messages in flight: those that were received and are not answered yet. A client that sends more has
// to read its answers first.
const (
	maxQueued = 32 << 20 // bytes of lines that are not large, with queuedEach for each line
	maxLarge  = 4 << 20  // bytes of large lines above which no further one is read

	queuedEach = 2 << 10
)

// lookEvery is the interval at which a connection checks whether the client still exists or reads its answers. The
// connection checks this while it does not read, or while calls wait after the end of the input.
const lookEvery = 250 * time.Millisecond

// waitForRoom blocks until the large lines in flight leave room for another large line, or the connection is closed.
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

// holdsLarge adds n to the number of bytes of the large lines in flight. n is negative when a large line is no longer
// in flight.
func (c *connection) holdsLarge(n int64) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	c.large += n
	c.mu.Unlock()
	signal(c.room)
}

// signal sends to the channel ch if that is possible without waiting. It never blocks.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
