package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/working"
)

// reply is the reply of a script, or a part of it. If a value has an unexpected type, the methods set *err, unless it
// is set already.
type reply struct {
	v   any
	err *error
}

func (r reply) fail(want string) {
	if *r.err == nil {
		*r.err = &errs.CorruptionError{Path: "redis", Offset: -1,
			Err: fmt.Errorf("the reply of the server has %T instead of %s", r.v, want)}
	}
}

func (r reply) list() []reply {
	list, ok := r.v.([]any)
	if !ok {
		r.fail("a list")
		return nil
	}
	all := make([]reply, len(list))
	for i, v := range list {
		all[i] = reply{v, r.err}
	}
	return all
}

func (r reply) at(i int) reply {
	list, _ := r.v.([]any)
	if i >= len(list) {
		r.fail("a longer list")
		return reply{nil, r.err}
	}
	return reply{list[i], r.err}
}

func (r reply) text() string {
	s, ok := r.v.(string)
	if !ok {
		r.fail("a text")
	}
	return s
}

func (r reply) int() int64 {
	if n, ok := r.v.(int64); ok {
		return n
	}
	n, err := strconv.ParseInt(r.text(), 10, 64)
	if err != nil {
		r.fail("a number")
	}
	return n
}

func (r reply) time() time.Time {
	us := r.int()
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// item converts a list of value, version, time and ttl into an item. If the reply is nil, the item does not exist.
func (r reply) item(name string) working.Item {
	if r.v == nil {
		return working.Item{Name: name}
	}
	return working.Item{Name: name, Found: true, Value: []byte(r.at(0).text()), Version: uint64(r.at(1).int()),
		Updated: r.at(2).time(), TTL: r.at(3).int()}
}

// named converts a list that has the name of an item, followed by the values that the method item converts. The list
// may have only the name.
func (r reply) named() working.Item {
	list, _ := r.v.([]any)
	name := r.at(0).text()
	if len(list) <= 1 {
		return working.Item{Name: name, Found: true}
	}
	return reply{list[1:], r.err}.item(name)
}

// note converts a text of the form <sequence>:<time>:<text> into a scratchpad entry.
func (r reply) note() working.Note {
	part := strings.SplitN(r.text(), ":", 3)
	if len(part) < 3 {
		r.fail("an entry of the scratchpad")
		return working.Note{}
	}
	seq, us := reply{part[0], r.err}, reply{part[1], r.err}
	return working.Note{Seq: uint64(seq.int()), Time: us.time(), Text: part[2]}
}

// checkpoint converts a list of id, time, keys, entries, changed and description into the description of a checkpoint.
// If the list has only the id, the checkpoint is damaged.
func (r reply) checkpoint() working.CheckpointInfo {
	list, _ := r.v.([]any)
	info := working.CheckpointInfo{ID: r.at(0).text()}
	if len(list) == 1 {
		info.Err = &working.CheckpointError{ID: info.ID,
			Err: fmt.Errorf("%w: the contents of the checkpoint are missing or damaged", errs.ErrCorrupt)}
		return info
	}
	info.Created, info.Keys, info.Notes = r.at(1).time(), int(r.at(2).int()), int(r.at(3).int())
	info.Changed, info.Description = int(r.at(4).int()), r.at(5).text()
	return info
}

func wrongType(key string, err error) error {
	return &errs.CorruptionError{Path: key, Offset: -1, Err: errors.Join(working.ErrWrongType, err)}
}
