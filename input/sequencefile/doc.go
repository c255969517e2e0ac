// Package sequencefile reads Hadoop SequenceFiles: the files of key/value records that MapReduce, Spark,
// Cascading and Hive write. It owns the format and which codecs files name; packages unpack and bzip2 decompress.
// It knows nothing of where a file lies or what its records mean.
//
// A record passes through a Reader like this: the file is read into one buffer (input), from which uncompressed
// records are sliced without being copied. In RECORD compression the value is decompressed into a second buffer. In
// BLOCK compression each of the four columns of a block is decompressed into a buffer (column), from which the records are
// sliced. Key and Value are taken out of their BytesWritable or Text wrapping; nothing is allocated per record.
//
// # Format
//
// Integers are big-endian; a vint is Hadoop's WritableUtils.writeVInt; a string is a vint length and that many bytes of
// UTF-8. The header:
//
//	"SEQ"            3 bytes
//	version          1 byte: 4, 5 or 6
//	key class        string, a Java class name
//	value class      string
//	compressed       1 byte, 0 or 1
//	block            1 byte, 0 or 1; 1 only if compressed is
//	codec class      string; only if compressed, and from version 5 on (in version 4 it is DefaultCodec)
//	metadata         int32 count, then that many pairs of strings; from version 6 on
//	sync             16 bytes, random for each file
//
// Uncompressed and RECORD-compressed files go on with records, before any of which a sync entry may stand:
//
//	record length    int32: bytes of key and value together
//	key length       int32
//	key              serialised key
//	value            serialised value; compressed, if RECORD
//
//	escape           int32, -1, where a record length would be: a sync entry follows
//	sync             16 bytes, as in the header
//
// BLOCK-compressed files go on with blocks:
//
//	escape, sync     as above
//	records          vint
//	4 columns        key lengths (vints), keys, value lengths (vints), values: each a vint length and that many bytes,
//	                 compressed by themselves
//
// A serialised BytesWritable is an int32 length and its bytes, a serialised Text a vint length and its bytes.
//
// # Memory
//
// No length in a file is believed: buffers grow with the bytes that come. A reader holds the current record, or a column of the current
// block, as it is in the file, and what is decompressed: a value, up to MaxExpanded, or the columns of a block, up to twice
// MaxExpanded together. Zstandard adds a window of 128 MiB at most.
//
// # What is checked
//
// Everything that the format lets a reader check: the header, every length against its bounds and against what is
// there, sync markers, the checksums of codecs that have them (zlib, gzip, bzip2, zstd if written), that the counts and
// lengths in a block agree with its contents, that nothing is left over. All damage is ErrCorrupt. What cannot be seen from the inside is a flipped bit in an uncompressed value, and a
// file cut off exactly between two records (or two blocks): the format has no end mark. Whoever knows how long the file
// should be has to compare it with what was read.
//
// The format is described at https://hadoop.apache.org/docs/stable/api/org/apache/hadoop/io/SequenceFile.html.
package sequencefile
