// Package filter reads conditions on the metadata of a memory, and judges them:
//
//	source=desk            the member is this text, number, true, false or null; of a list, one of it is
//	source!=desk           it is not, or is not there
//	priority>=3            also >, <, <=. A member that is a number is compared as one, a text by its
//	                       bytes, which is the order of times in RFC 3339
//	path^=docs/            it is a text that begins so
//	source=desk,phone      one of several; a comma that is meant is in quotes: name="Doe, Jane"
//	source                 it is there
//	!source                it is not
//
// A name is a path: address.city is a member of a member. "metadata." before it may be there. A name in quotes
// is one member, as it is written: "due date"<2026, "a.b"=1. Without quotes a name that has a colon, a tilde or a
// space is refused unless an operator follows, as source:desk is meant to be source=desk.
//
// A number and a text have no order, so that n>x holds for no number n, and priority>=3 for no text "high"; a
// text that begins as a number does, such as a date, is compared with a number by its bytes. Tally says so of memories
// that a condition does not choose.
package filter
