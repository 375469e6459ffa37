// Package filter parses conditions on the metadata of a memory and evaluates them:
//
//	source=desk            the member equals this text, number, true, false or null, or is a list
//	                       with an element that does
//	source!=desk           the member does not, or does not exist
//	priority>=3            also >, <, <=. Numbers are compared numerically, texts by their bytes,
//	                       which is the order of times in RFC 3339
//	path^=docs/            the member is a text that begins with this
//	source=desk,phone      one of several values; quotes protect a comma: name="Doe, Jane"
//	source                 the member exists
//	!source                the member does not exist
//
// A name is a path: address.city is a member of a member. It may begin with "metadata.". A name in quotes is one member
// and taken literally: "due date"<2026, "a.b"=1. A name without quotes that has a colon, a tilde or a space is refused
// unless an operator follows, because source:desk is probably a mistake for source=desk.
//
// A number and a text have no order: n>x is false for every number n, and priority>=3 for the text "high". A text that
// begins like a number, such as a date, is compared with a number by its bytes. Tally explains why a condition is false
// for all memories.
package filter
