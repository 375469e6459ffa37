package memstore

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Order is an order of a listing other than by id: by a key, whose times are in whole microseconds, and then by id.
// Every listing with an Order begins after the place At. The method Place returns the place that the newest listing
// has reached. A listing that begins at this place continues the earlier one, whatever was written in between: a
// memory is omitted or comes twice only if its own key has changed. Concurrent listings need an Order each.
type Order struct {
	By   OrderKey
	Down bool
	At   *Place // the place after which listings begin; nil: at the beginning
	Skip int    // number of memories that pass the filters and are skipped at the beginning of a listing

	reached *Place // place of the newest listing; nil: that listing has yielded nothing yet
	of      *Order // in a listing's copy: the Order from which it was copied
}

// Begin returns a copy of o for one listing. The listing changes only the copy, so that o can be used for the next
// listing too.
func (o *Order) Begin() *Order {
	return &Order{By: o.By, Down: o.Down, At: o.At, Skip: o.Skip, of: o}
}

// Start makes the listing that uses o the newest one, to which Place of the original Order refers. o is a copy that
// Begin returned. A listing calls Start just before it yields memories. Calls that take the same filters and list
// nothing, such as a count, do not call Start.
func (o *Order) Start() {
	if o.of != nil {
		o.of.reached = nil
	}
}

// Move records p as the place that the listing has reached. o is the copy of an Order that Begin returned for the
// listing.
func (o *Order) Move(p Place) {
	o.At = &p
	if o.of != nil {
		o.of.reached = o.At
	}
}

// Place is a position in an order, given by the key and the id of a memory.
type Place struct {
	Key int64
	ID  string
}

// Compare compares two places of one order.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Key, o.Key), cmp.Compare(p.ID, o.ID))
}

// OrderKey is the key by which a listing is sorted; memories with equal keys are sorted by id. Package
// internal/words/order has the same keys.
type OrderKey int

// The keys.
const (
	OrderID OrderKey = iota
	OrderTimestamp
	OrderCreated
	OrderUpdated
	OrderScore
	OrderSize
)

var orderNames = []string{"id", "timestamp", "created", "updated", "score", "size"}

// orderMembers maps names of members in documents to the names of the same keys in ParseOrder.
var orderMembers = map[string]string{"created_at": "created", "updated_at": "updated", "quickrecal_score": "score"}

// OrderNames returns the names of the keys that ParseOrder accepts, sorted.
func OrderNames() []string { return slices.Sorted(slices.Values(orderNames)) }

// ParseOrder returns the order for a key: timestamp (when the event happened), created, updated, score, size (of the
// document) or id. A key with a leading "-" means the opposite order. The names in documents (created_at, updated_at
// and quickrecal_score) are accepted as well. place is a result of Place from which the listing continues; "" is the
// beginning.
func ParseOrder(key, place string) (*Order, error) {
	name, down := strings.CutPrefix(key, "-")
	by := slices.Index(orderNames, cmp.Or(orderMembers[name], name))
	if by < 0 {
		return nil, &errs.FieldError{Field: "order", Value: human.Quote(key),
			Err: fmt.Errorf("%w: must be %s; a - before the name reverses the order", errs.ErrInvalid,
				strings.Join(OrderNames(), ", "))}
	}
	o := &Order{By: OrderKey(by), Down: down}
	if place == "" {
		return o, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(place)
	of, at, _ := strings.Cut(string(b), " ")
	number, id, ok := strings.Cut(at, " ")
	n, nerr := strconv.ParseInt(number, 10, 64)
	if err = errors.Join(err, nerr); err != nil || !ok || of != o.Key() {
		return nil, &errs.FieldError{Field: "place", Value: human.Quote(place),
			Err: fmt.Errorf("%w: must be a place that a listing by %s has returned", errs.ErrInvalid, key)}
	}
	o.At = &Place{Key: n, ID: id}
	return o, nil
}

// Key returns the key in the form that ParseOrder accepts.
func (o *Order) Key() string {
	if o.Down {
		return "-" + orderNames[o.By]
	}
	return orderNames[o.By]
}

// Place returns the place after the memory that the newest listing has yielded last. If that listing has yielded
// nothing yet, it returns the place at which the listing began: "" for the beginning.
func (o *Order) Place() string {
	at := cmp.Or(o.reached, o.At)
	if at == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d %s", o.Key(), at.Key, at.ID))
}

// Compare compares two memories in the order, for the hits of a search: by time or quickrecal_score, and then by id. A
// Memory does not have the size of its document, so the order by size is by id here.
func (o *Order) Compare(a, b *Memory) int {
	n := 0
	switch o.By {
	case OrderTimestamp:
		n = a.Timestamp.Compare(b.Timestamp)
	case OrderCreated:
		n = a.CreatedAt.Compare(b.CreatedAt)
	case OrderUpdated:
		n = a.UpdatedAt.Compare(b.UpdatedAt)
	case OrderScore:
		n = cmp.Compare(a.QuickRecalScore, b.QuickRecalScore)
	}
	if n = cmp.Or(n, strings.Compare(a.ID, b.ID)); o.Down {
		return -n
	}
	return n
}

// Skips reports whether the listing must skip the next memory that passes its filters, because Skip memories are not
// skipped yet. It decrements Skip.
func (o *Order) Skips() bool {
	if o == nil || o.Skip == 0 {
		return false
	}
	o.Skip--
	return true
}
