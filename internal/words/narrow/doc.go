// Package narrow finds the rows of a words.Set that can satisfy conditions on the metadata, so that a caller need only
// read those documents. The rows it returns include all that satisfy the conditions, and others: the document itself
// decides.
//
// If the text of a metadata member equals a value, or begins with it, the member's field has all words of that value,
// whatever the analyzer does: stems, cut words and pairs of characters are the same on both sides. So the rows with
// these words in that field suffice. No part of a member is left out when it is indexed; only words of more than
// analyzer.MostTerm bytes are cut, and they are cut here as well. A condition does not narrow if
//
//   - its member belongs to no field, or its value has no word (or it has no values),
//   - a value that is not a text can satisfy it as well: only texts have words (callers omit such conditions),
//   - it has very many values, or all words of a value are in most rows.
//
// Rows without a time, whose documents could not be read when they were indexed, are always among the rows, as are all
// rows of the parts that the caller reports as having no words.
package narrow
