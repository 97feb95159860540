/*
 * output_file.h - a file that is there whole or not at all.
 */
#ifndef HW_CUDA_OUTPUT_FILE_H
#define HW_CUDA_OUTPUT_FILE_H

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

#include "hw/cuda/failure.h"

/* Opened before anything is measured: it would be a pity afterwards. */
struct output_file {
	std::string path, beside;
	FILE *to;

	explicit output_file(const std::string &name)
		: path(name), beside(name + "." + std::to_string(getpid()) + ".part"), to(fopen(beside.c_str(), "we"))
	{
		if (!to)
			throw failure(EXIT_FAILED, "cannot write '" + path + "': " + std::strerror(errno));
	}

	~output_file()
	{
		if (to)
			fclose(to);
		if (!beside.empty())
			unlink(beside.c_str());
	}

	void commit()
	{
		bool bad = ferror(to) != 0;
		bad |= fclose(to) != 0;
		to = nullptr;
		if (bad || rename(beside.c_str(), path.c_str()))
			throw failure(EXIT_FAILED, "cannot write '" + path + "': " + std::strerror(errno));
		beside.clear();
	}
};

#endif
