#include "frontend/files/line_reader.h"

#include <algorithm>
#include <span>

#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr int64_t kMinPartBytes = int64_t{256} << 10;

}  // namespace

bool SequentialBytes::read_more(std::string& text) {
  const size_t before = text.size();
  const int64_t wanted = std::max(kMinPartBytes, static_cast<int64_t>(before));
  const int64_t count = std::min(wanted, file_->size() - read_);
  if (count == 0) return false;
  text.resize(before + static_cast<size_t>(count));
  file_->read(read_, std::as_writable_bytes(std::span(text).subspan(before)));
  read_ += count;
  return true;
}

bool LineReader::next(std::string_view& line) {
  ++number_;
  size_t end = text_.find('\n', at_);
  while (end == std::string::npos) {
    text_.erase(0, at_);
    at_ = 0;
    const size_t searched = text_.size();
    if (static_cast<int64_t>(searched) > kMaxRecordBytes) {
      throw UserError(ir::file_and_line(source_name_, number_) + ": the line has more than " +
                      std::to_string(kMaxRecordBytes >> 20) + " MiB");
    }
    if (!file_.read_more(text_)) break;
    end = text_.find('\n', searched);
  }
  if (end == std::string::npos && at_ == text_.size()) return false;
  line = std::string_view(text_).substr(at_, end - at_);
  at_ = std::min(end, text_.size() - 1) + 1;
  return true;
}

}  // namespace fluid
