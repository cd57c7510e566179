// Column tables: a reader learns one from training data, and other data is read by it.

#include <gtest/gtest.h>

#include <filesystem>

#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::tables_test {
namespace {

/// A classifier of the shape of things by their size, which tells ball from box, and their color.
class Tables : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("shapes.fir"), R"(program @shapes {
  %x = data "x" : f32[?, 1]
  %color = data "color" : i64[?]
  %y = data "y" : i64[?]
  %w = param "w" {init = "constant", value = 0.0} : f32[1, 2]
  %table = param "table" {init = "constant", value = 0.0} : f32[3, 2]
  %a = matmul(%x, %w) : f32[?, 2]
  %b = embedding(%table, %color) : f32[?, 2]
  %logits = add(%a, %b) : f32[?, 2]
  %l = softmax_cross_entropy(%logits, %y) : f32[?]
  %loss = mean(%l) : f32[]
  %accuracy = accuracy(%logits, %y) : f64[2]
  %prob = softmax(%logits) : f32[?, 2]
  train(%loss) {optimizer = "sgd", lr = 1.0}
  output "loss" = %loss
  output "accuracy" = %accuracy
  output "prob" = %prob
}
)");
    write_plain(dir_.file("train.csv"),
                "id,size,color,shape,part\n"
                "1,10,red,ball,train\n"
                "2,12,blue,ball,train\n"
                "3,30,red,box,train\n"
                "4,32,blue,box,train\n"
                "5,11,blue,ball,val\n"
                "6,500,red,box,test\n");
  }

  Result expect_good(const std::string& arguments) const {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << arguments << ": " << result.output;
    return result;
  }
  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }

  const std::string data_ =
      "'csv:train.csv?label=shape&categories=color,shape&drop=id&normalize=1&split=part' ";
  std::string train(int epochs = 20) const {
    return "train shapes.fir --batch 4 --save w.safetensors --epochs " + std::to_string(epochs) +
           " --data " + data_;
  }
  const std::string predict_ = "predict shapes.fir --params w.safetensors --data ";
};

TEST_F(Tables, DeployedParametersReadNewDataAsInTraining) {
  const Result trained = expect_good(train() + "--val " + data_);
  expect_has(trained.output, "val_accuracy");
  std::filesystem::remove(dir_.file("train.csv"));
  write_plain(dir_.file("new.csv"),
              "color,weight,size\n"
              "red,9,33\n"
              "red,9,9\n");
  const Result predicted = expect_good(predict_ + "csv:new.csv");
  expect_has(predicted.output,
             "data 'csv:new.csv': columns are read as in training, by the table in w.safetensors");
  expect_has(predicted.output, "\n0  prob box (0.");
  expect_has(predicted.output, "\n1  prob ball (0.");
  EXPECT_EQ(predicted.output.find("not used"), std::string::npos) << predicted.output;

  write_plain(dir_.file("test.csv"),
              "shape,color,size\n"
              "box,red,35\n");
  const Result evaluated =
      expect_good("eval shapes.fir --params w.safetensors --data csv:test.csv");
  expect_has(evaluated.output, "accuracy 1\n");
  expect_has(expect_good(predict_ + "csv:test.csv").output, "[y box]");

  expect_good(predict_ + "csv:new.csv --output prob.csv");
  const std::string csv = read_file(dir_.file("prob.csv"));
  EXPECT_TRUE(csv.starts_with("index,prob.0,prob.1,prob.class\n")) << csv;
  EXPECT_EQ(csv.substr(csv.size() - 5), "ball\n") << csv;
}

TEST_F(Tables, UnseenCategoriesAreNamedOrGetAnIdOfTheirOwn) {
  expect_good(train());
  write_plain(dir_.file("new.csv"), "size,color\n9,red\n9,green\n");
  expect_late_error(
      predict_ + "csv:new.csv",
      "new.csv:3: column 'color': no category 'green' in the training data; unknown=1 "
      "gives it the id 2");
  const Result predicted = expect_good(predict_ + "'csv:new.csv?unknown=1'");
  expect_has(predicted.output, "\n1  prob ball (0.");
}

TEST_F(Tables, ColumnsOfTheDataSelectItsRows) {
  const Result first = expect_good("data " + data_);
  expect_has(first.output, ": 4 samples\nrows: 4 to train, 1 to validate, 1 to test\n");
  expect_has(first.output, "x f32[1]   -1.09454 to 1.09454");
  expect_has(expect_good("data --split val " + data_).output, ": 1 samples\n");
  const Result test = expect_good("data " + data_ + "--split test");
  expect_has(test.output, "train.csv:7");
  EXPECT_EQ(test.output.find("[part"), std::string::npos) << "no column: " << test.output;
  expect_error("train shapes.fir --data 'csv:train.csv?split=part&val=0.1'",
               "options val and split=part both split the rows");
  const Result trained = expect_good(train() + "--val " + data_);
  EXPECT_EQ(trained.output.find("also trained on"), std::string::npos) << trained.output;
}

TEST_F(Tables, CheckpointsKeepThem) {
  const std::string flags = "--checkpoint-dir run ";
  expect_good(train() + flags);
  const std::string params = "run/last/parameters.safetensors";
  write_plain(dir_.file("new.csv"), "color,size\nred,33\n");
  expect_has(expect_good("predict shapes.fir --params " + params + " --data csv:new.csv").output,
             "0  prob box (0.");

  const Result more = expect_good(train(21) + flags + "--resume");
  expect_has(more.output, "columns are read as in training, by the table in run\n");
  EXPECT_EQ(more.output.find("results differ"), std::string::npos) << more.output;
  std::string rows = read_file(dir_.file("train.csv"));
  write_plain(dir_.file("train.csv"), rows + "7,11,amber,ball,val\n");
  expect_late_error(train(22) + flags + "--resume",
                    "train.csv:8: column 'color': no category 'amber' in the training data; "
                    "unknown=1 gives it the id 2");
  std::string anew = train(22) + flags;
  anew.replace(anew.find("&split"), 6, "&table=none&split");
  expect_has(expect_good(anew + "--resume").output,
             "read by another table of columns than before the checkpoint");
}

TEST_F(Tables, TrainingGoesOnByTheTableOfItsParameters) {
  expect_good(train());
  write_plain(dir_.file("more.csv"), "size,color,shape\n30,red,box\n10,red,ball\n");
  const Result more = expect_good(
      "train shapes.fir --params w.safetensors --save v.safetensors --data csv:more.csv");
  expect_has(more.output, "by the table in w.safetensors");
  const Result again = expect_good("predict shapes.fir --params v.safetensors --data csv:more.csv");
  expect_has(again.output, "\n0  prob box (0.");
  expect_has(again.output, "\n1  prob ball (0.");
  write_plain(dir_.file("far.csv"), "size,color,shape\n30,red,cone\n");
  expect_late_error("train shapes.fir --params w.safetensors --data csv:far.csv",
                    "far.csv:2: column 'shape': no category 'cone' in the training data");
}

TEST_F(Tables, ValidationIsReadAsTheTrainingData) {
  write_plain(dir_.file("val.csv"), "shape,size,color\nbox,35,red\n");
  const Result trained = expect_good(train() + "--val csv:val.csv");
  expect_has(trained.output, "val_accuracy");
  EXPECT_EQ(trained.output.find("not used"), std::string::npos) << trained.output;
  write_plain(dir_.file("val.csv"), "shape,size,color\nbox,35,pink\n");
  expect_error(
      "train shapes.fir --data " + data_ + "--val csv:val.csv",
      "val.csv:2: column 'color': no category 'pink' in the training data; unknown=1 gives "
      "it the id 2");
}

TEST_F(Tables, OfAFileAreWrittenByTrainAlone) {
  const std::string columns =
      "csv:train.csv?label=shape&categories=color,shape&drop=id,part&table=";
  expect_error("data '" + columns + "typo.safetensors'", "there is no file 'typo.safetensors'");
  const std::string spec = "'" + columns + "t.json' ";
  const std::string absent = "there is no table t.json: the columns of this data are learned\n";
  expect_has(expect_good("data " + spec).output, absent);
  expect_has(expect_good("bench shapes.fir --batch 4 --steps 1 --data " + spec).output, absent);
  const std::string train = "train shapes.fir --data " + spec;
  expect_has(expect_good(train + "--dry-run").output, absent);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("t.json")));
  expect_has(expect_good(train).output, "wrote table t.json\n");
  EXPECT_TRUE(std::filesystem::exists(dir_.file("t.json")));
  EXPECT_EQ(expect_good(train).output.find("t.json\n"), std::string::npos) << "it is read";
}

TEST_F(Tables, OfAnAbsentFileForValidationAreThoseOfTheTrainingData) {
  const std::string data = "'csv:train.csv?label=shape&categories=color,shape&drop=id&split=part";
  const std::string output =
      expect_good("train shapes.fir --epochs 1 --data " + data + "' --val " + data + "&table=v'")
          .output;
  expect_has(output,
             "there is no table v: columns are read as in training, by the table of --data");
}

TEST_F(Tables, OfAnAbsentFileAreThoseOfTheEarlierTraining) {
  const std::string train =
      "train shapes.fir --data 'csv:train.csv?label=shape&categories=color,shape&drop=id,part"
      "&table=t.json' --save w.safetensors ";
  expect_good(train + "--checkpoint-dir run --epochs 1");
  const auto expect_table_of = [&](const std::string& where, const std::string& flags) {
    const std::string table = read_file(dir_.file("t.json"));
    std::filesystem::remove(dir_.file("t.json"));
    write_plain(dir_.file("train.csv"), "id,size,color,shape,part\n1,30,red,box,train\n");
    const Result result = expect_good(train + flags);
    expect_has(result.output,
               "there is no table t.json: columns are read as in training, by the table in " +
                   where + "\n");
    expect_has(result.output, "wrote table t.json\n");
    EXPECT_EQ(result.output.find("another table"), std::string::npos) << result.output;
    EXPECT_EQ(read_file(dir_.file("t.json")), table);
  };
  expect_table_of("run", "--checkpoint-dir run --resume --epochs 2");
  expect_table_of("w.safetensors", "--params w.safetensors --epochs 1");
  write_plain(dir_.file("train.csv"), "id,size,color,shape,part\n1,30,amber,box,train\n");
  std::filesystem::remove(dir_.file("t.json"));
  expect_late_error(train + "--checkpoint-dir run --resume",
                    "column 'color': no category 'amber' in the training data");
  EXPECT_FALSE(std::filesystem::exists(dir_.file("t.json")));
}

TEST_F(Tables, OfAFileAreReadByTheValidationDataOfTheirTraining) {
  const std::string columns = "csv:train.csv?label=shape&categories=color,shape&drop=id,part";
  write_plain(dir_.file("val.csv"), "shape,size,color\nbox,35,red\n");
  const std::string train =
      "train shapes.fir --val 'csv:val.csv?table=./t.json' --data '" + columns + "&table=t.json' ";
  expect_good(train + "--dry-run");
  EXPECT_FALSE(std::filesystem::exists(dir_.file("t.json")));
  expect_has(expect_good(train).output, "val_accuracy");
  EXPECT_TRUE(std::filesystem::exists(dir_.file("t.json")));
}

TEST_F(Tables, OfAFileAreNotLeftByARunThatDoesNotBegin) {
  write_plain(dir_.file("train.jsonl"),
              "{\"x\": [1.5], \"color\": \"red\", \"y\": 0}\n"
              "{\"x\": [2.5], \"color\": \"blue\", \"y\": 1}\n");
  const std::string csv =
      "'csv:train.csv?label=shape&categories=color,shape&drop=id,part&table=t.json";
  const std::string jsonl = "'jsonl:train.jsonl?table=t.json";
  const std::pair<std::string, std::string> cases[] = {
      {csv + "&x=color&color=x'", "column 'x' is i64[?], but the feed is f32[?, 1]"},
      {jsonl + "&x=color&color=x'", "column 'x' is i64[?], but the feed is f32[?, 1]"},
      {csv + "&color=x'", "two columns are named"},
      {jsonl + "&columns=x,color'", "feed 'y' is missing"},
      {jsonl + "&typo=1'", "no option or column 'typo'"},
      {jsonl + "' --best loss", "--best needs --val"},
      {jsonl + "' --val jsonl:absent.jsonl", "absent.jsonl"},
      {"'jsonl:train.jsonl?table=absent/t.json'", "cannot write 'absent/t.json'"},
  };
  for (const auto& [flags, message] : cases) {
    expect_late_error("train shapes.fir --data " + flags, message);
  }
  expect_has(expect_good("train shapes.fir --data " + jsonl + "'").output, "wrote table t.json\n");
}

TEST_F(Tables, ParametersOfOtherProgramsHaveNone) {
  write_plain(dir_.file("rows.csv"), "a,b,y\n1,2,3\n2,3,4\n");
  expect_good("train line.fir --save w --data synthetic-linear?n=10");
  const Result result = expect_good("eval line.fir --params w --data csv:rows.csv?label=y");
  EXPECT_EQ(result.output.find("table"), std::string::npos) << result.output;
}

/// Predicts the next character of "abcdabcd...".
TEST_F(Tables, OfCharactersAreKeptWithTheParameters) {
  write_plain(dir_.file("next.fir"), R"(program @next {
  %x = data "text" : i64[?, 3]
  %y = data "target" : i64[?, 3]
  %table = param "table" {init = "constant", value = 0.0} : f32[4, 4]
  %logits = embedding(%table, %x) : f32[?, 3, 4]
  %l = softmax_cross_entropy(%logits, %y) : f32[?, 3]
  %loss = mean(%l) : f32[]
  train(%loss) {optimizer = "sgd", lr = 10.0}
  output "loss" = %loss
}
)");
  std::string text;
  for (int i = 0; i < 20; ++i) text += "abcd";
  write_plain(dir_.file("train.txt"), text);
  write_plain(dir_.file("other.txt"), "bcdabcdabcdabcdabcdabcdabcdabcdabcdabcdabcda");
  const std::string data = "--data 'text:train.txt?characters&length=3' ";
  expect_good("train next.fir --epochs 20 --batch 5 --save next.safetensors " + data);
  const std::string eval =
      "eval next.fir --params next.safetensors --data 'text:other.txt?length=3&split=train";
  const std::string output = expect_good(eval + "'").output;
  EXPECT_LT(std::stod(output.substr(output.find("loss ") + 5)), 0.1) << output;
  write_plain(dir_.file("other.txt"), "bcdabcx-----------");
  expect_late_error(eval + "'",
                    "other.txt: byte 6: the character 'x' (U+0078); unknown=1 gives it the id 4");
}

}  // namespace
}  // namespace fluid::tables_test
