package table

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

const (
	blockSize = 64 << 10
	hashWidth = 16 // number of hex digits of a block's hash

	// Format is the version of the table file format that this package reads and writes.
	Format   = 1
	endHead  = `,"end":"`
	endTail  = `"}` + "\n"
	endWidth = len(endHead) + 16 + 1 + 16 + len(endTail)

	timeForm = "2006-01-02T15:04:05.000000Z"
)

// Meta has the metadata of a table: which store it belongs to and which range of the log it covers.
type Meta struct {
	Store   string    // UUID of the store
	From    uint64    // LSN of the base of a delta
	LSN     uint64    // position below which the table has all changes of the log
	Updated time.Time // time at which the table was written, with microseconds
	Extra   []byte    // JSON object that belongs to the caller, nil for none
}

// span is the position and size of a section in a table file.
type span struct {
	start, end  int64 // offsets of the first byte of the section's lines and of their end
	lines, live int64
}

// appendMeta appends the metadata line of a table, up to where the hashes of the blocks begin.
func appendMeta(dst []byte, sch *Schema, m *Meta, sections []span) []byte {
	dst = append(dst, `,"metadata": {"version":"`...)
	dst = strconv.AppendInt(dst, Format, 10)
	dst = append(dst, `","last_updated":"`...)
	dst = m.Updated.UTC().AppendFormat(dst, timeForm)
	dst = append(dst, '"')
	for i, s := range sch.Sections[:len(sections)] {
		if s.Count != "" {
			dst = append(dst, `,"`...)
			dst = append(dst, s.Count...)
			dst = append(dst, `":`...)
			dst = strconv.AppendInt(dst, sections[i].live, 10)
		}
	}
	dst = append(dst, `,"store":"`...)
	dst = jsondoc.AppendEscaped(dst, m.Store)
	dst = append(dst, `","from":`...)
	dst = strconv.AppendUint(dst, m.From, 10)
	dst = append(dst, `,"lsn":`...)
	dst = strconv.AppendUint(dst, m.LSN, 10)
	if len(m.Extra) > 0 {
		dst = append(dst, `,"extra":`...)
		dst = append(dst, m.Extra...)
	}
	for i, s := range sch.Sections[:len(sections)] {
		if i == 0 {
			dst = append(dst, `,"sections":{"`...)
		} else {
			dst = append(dst, `],"`...)
		}
		dst = append(dst, s.Name...)
		dst = append(dst, `":[`...)
		v := sections[i]
		dst = strconv.AppendInt(dst, v.start, 10)
		for _, n := range []int64{v.end, v.lines, v.live} {
			dst = append(dst, ',')
			dst = strconv.AppendInt(dst, n, 10)
		}
	}
	return append(dst, `]},"blocks":"`...)
}

// blocksTail is the text after the hashes of the blocks, at the end of the metadata line.
const blocksTail = `"}` + "\n"

// parseMeta parses the metadata line of a table, whose checksum is already verified. blocks are the hashes of
// the blocks; the slice points into line. sections are the sections that the file has.
func parseMeta(line []byte, sch *Schema) (m Meta, sections []span, blocks []byte, err error) {
	p := metaParser{rest: line}
	p.expect(`,"metadata": {"version":"`)
	if v := p.number(); p.err == nil && v != Format {
		return m, nil, nil, &errs.NewerError{Format: uint64(v), Reads: Format}
	}
	p.expect(`","last_updated":"`)
	m.Updated = p.time()
	p.expect(`"`)
	counts := make([]uint64, len(sch.Sections))
	for i, s := range sch.Sections {
		member := `,"` + s.Count + `":`
		if s.Count != "" && (!s.Optional || bytes.HasPrefix(p.rest, []byte(member))) {
			p.expect(member)
			counts[i] = p.number()
		}
	}
	p.expect(`,"store":"`)
	m.Store = p.text()
	p.expect(`","from":`)
	m.From = p.number()
	p.expect(`,"lsn":`)
	m.LSN = p.number()
	m.Extra = p.extra()
	sections = make([]span, len(sch.Sections))
	for i, s := range sch.Sections {
		if i == 0 {
			p.expect(`,"sections":{"` + s.Name + `":[`)
		} else {
			next := `],"` + s.Name + `":[`
			if s.Optional && !bytes.HasPrefix(p.rest, []byte(next)) {
				if counts[i] != 0 {
					p.fail(s.Count + " is not 0, but the file lacks its section")
				}
				sections = sections[:i]
				break
			}
			p.expect(next)
		}
		sections[i] = p.span()
		if s.Count != "" && int64(counts[i]) != sections[i].live {
			p.fail(s.Count + " differs from the number of entries of its section")
		}
	}
	p.expect(`]},"blocks":"`)
	if p.err == nil && !bytes.HasSuffix(p.rest, []byte(blocksTail)) {
		p.fail("the metadata end too early")
	}
	if p.err != nil {
		return m, nil, nil, p.err
	}
	return m, sections, p.rest[:len(p.rest)-len(blocksTail)], nil
}

// metaParser parses the metadata line of a table. After the first error its methods return zero values.
type metaParser struct {
	rest []byte
	err  error
}

func (p *metaParser) fail(msg string) {
	if p.err == nil {
		p.err = errors.New(msg)
	}
}

func (p *metaParser) expect(s string) {
	if p.err != nil {
		return
	}
	if len(p.rest) < len(s) || string(p.rest[:len(s)]) != s {
		p.fail("the metadata lacks " + s)
		return
	}
	p.rest = p.rest[len(s):]
}

func (p *metaParser) number() uint64 {
	n := 0
	for n < len(p.rest) && n < 20 && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(p.rest[:n]), 10, 64)
	if err != nil {
		p.fail("the metadata lack a number")
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *metaParser) span() span {
	var v [4]int64
	for i := range v {
		if i > 0 {
			p.expect(",")
		}
		if v[i] = int64(p.number()); v[i] < 0 {
			p.fail("a number in the metadata is too large")
		}
	}
	return span{v[0], v[1], v[2], v[3]}
}

func (p *metaParser) time() time.Time {
	if len(p.rest) < len(timeForm) {
		p.fail("the metadata lack a time")
		return time.Time{}
	}
	t, err := time.Parse(timeForm, string(p.rest[:len(timeForm)]))
	if err != nil {
		p.fail("the metadata lack a time")
		return time.Time{}
	}
	p.rest = p.rest[len(timeForm):]
	return t
}

func (p *metaParser) text() string {
	n := keyEnd(p.rest)
	if p.err != nil || n < 0 {
		p.fail("the metadata lack a string")
		return ""
	}
	s, ok := appendDecoded(nil, p.rest[:n])
	if !ok {
		p.fail("a string in the metadata is not in the form that this program writes")
	}
	p.rest = p.rest[n:]
	return string(s)
}

// extra consumes the caller's object, Meta.Extra, which ends where "sections" begins.
func (p *metaParser) extra() []byte {
	const head = `,"extra":`
	if p.err != nil || !bytes.HasPrefix(p.rest, []byte(head)) {
		return nil
	}
	n := bytes.Index(p.rest, []byte(`,"sections":{`))
	if n < 0 {
		p.fail("the metadata have no sections")
		return nil
	}
	x := bytes.Clone(p.rest[len(head):n])
	p.rest = p.rest[n:]
	return x
}
