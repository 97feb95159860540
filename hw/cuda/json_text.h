/*
 * json_text.h - words as JSON has them.
 */
#ifndef HW_CUDA_JSON_TEXT_H
#define HW_CUDA_JSON_TEXT_H

#include <string>

/* In quotes; what is not plain ASCII becomes '?'. */
inline std::string json_quoted(const std::string &text)
{
	std::string out = "\"";

	for (char c : text) {
		if (c == '"' || c == '\\')
			out += '\\';
		out += c < ' ' || c > '~' ? '?' : c;
	}
	return out + "\"";
}

#endif
