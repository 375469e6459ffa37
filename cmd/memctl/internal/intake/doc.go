// Package intake reads what comes into a store from outside.
//
//	source   a file, or stdin for -: whole up to a limit, or value by value; a signal ends
//	         the wait for it
//	values   one JSON object, an array of objects, or objects one after another, as memories
//	         or assemblies
//	vector   an embedding: a JSON list of numbers, or float32 values
//	import   Intake puts what package importer yields into a store, in chunks of one commit,
//	         and reports what came of each item
//
// What is read is judged before it is written: errors are varve's, with the place in the
// source.
package intake
