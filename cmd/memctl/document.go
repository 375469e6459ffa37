package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// document is the one JSON object that --json puts on stdout. Its members are
// written as they become known, so that a list of a million needs no memory,
// and the last of them can be the error that ended it.
type document struct {
	w       *bufio.Writer
	members int
	items   int
	list    bool
	lines   bool // of the command that goes on: what fails is the last of them
	err     error
}

func newDocument(w io.Writer) *document { return &document{w: bufio.NewWriterSize(w, 64<<10)} }

func (d *document) print(b []byte) {
	if _, err := d.w.Write(b); d.err == nil {
		d.err = err
	}
}

func (d *document) name(name string) {
	d.endList()
	open := []byte("{")
	if d.members > 0 {
		open = []byte(",")
	}
	d.members++
	d.print(open)
	d.print(d.encode(name))
	d.print([]byte(":"))
}

// member writes one member.
func (d *document) member(name string, v any) {
	b := d.encode(v)
	d.name(name)
	d.print(b)
}

// all writes the members of a struct.
func (d *document) all(v any) {
	b := bytes.TrimSuffix(bytes.TrimPrefix(d.encode(v), []byte("{")), []byte("}"))
	if len(b) == 0 {
		return
	}
	d.endList()
	if d.members > 0 {
		d.print([]byte(","))
	} else {
		d.print([]byte("{"))
	}
	d.members++
	d.print(b)
}

// begin starts a member that is a list; item adds to it. The next member ends it.
// Without --json there is no document, and nothing happens.
func (d *document) begin(name string) {
	if d == nil {
		return
	}
	d.name(name)
	d.print([]byte("["))
	d.list, d.items = true, 0
}

func (d *document) item(v any) {
	b := d.encode(v)
	if d.items > 0 {
		d.print([]byte(","))
	}
	d.items++
	d.print(b)
}

// line writes a document of its own.
func (d *document) line(v any) error {
	d.print(append(d.encode(v), '\n'))
	if err := d.w.Flush(); d.err == nil {
		d.err = err
	}
	return d.err
}

func (d *document) endList() {
	if d.list {
		d.print([]byte("]"))
		d.list = false
	}
}

// close ends the document.
func (d *document) close() error {
	d.endList()
	if d.members == 0 && !d.lines {
		d.print([]byte("{"))
		d.members++
	}
	if d.members > 0 {
		d.print([]byte("}\n"))
	}
	if err := d.w.Flush(); d.err == nil {
		d.err = err
	}
	return d.err
}

func (d *document) encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil && d.err == nil {
		d.err = err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
