//! `qwen35 chat`.

use super::Outcome;
use super::arguments::{ChatArguments, Thinking};
use super::backends::{self, ForBackend};
use super::output::{self, Reader};
use super::prompt::{self, PromptError};
use super::sampling;
use super::writing::{self, Count};
use qwen35_model::chat::{self, ChatTemplate, Clock, Conversation, Reply, Request, TemplateError};
use qwen35_model::checkpoint::{Checkpoint, ConfigJson, GenerationConfig, TokenizerConfig, Verified};
use qwen35_model::generate::{Generation, Stop, Transcript};
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::sampling::Sampler;
use qwen35_model::tokenizer::{Tokenizer, TokenizerError};
use qwen35_model::{Config, Model, SequenceError};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tt_dsl::Backend;

pub(super) fn run(arguments: &ChatArguments) -> Outcome {
    // The cheap checks first: nobody should wait for a load to hear of a wrong option.
    arguments.sampling.sampler()?;
    let checkpoint = super::open(&arguments.model)?;
    let known = Known::of(&ConfigJson::of(&checkpoint)?)?;
    known.with(Prepared { arguments, checkpoint: &checkpoint })
}

/// Everything but the two types.
struct Prepared<'a> {
    arguments: &'a ChatArguments,
    checkpoint: &'a Checkpoint,
}

impl ForConfig for Prepared<'_> {
    type Output = Outcome;

    fn run<C: Config>(self) -> Outcome {
        let Self { arguments, checkpoint } = self;
        let config = TokenizerConfig::of(checkpoint)?;
        let source = chat::find(checkpoint, config.as_ref())?;
        let special_tokens =
            config.as_ref().map(|config| config.special_tokens().clone()).unwrap_or_default();
        let template = ChatTemplate::compile(&source, special_tokens, Clock::local())?;
        let verified = checkpoint.verify::<C>()?;
        let tokenizer = Tokenizer::of::<C>(checkpoint)?;
        let generation = GenerationConfig::of(checkpoint)?;
        let turns = config.as_ref().map(|config| (config, &tokenizer));
        let stop = Stop::after::<C>(arguments.max_tokens)
            .or_at(&chat::stop_tokens::<C>(generation.as_ref(), turns)?);
        let random = arguments.random(generation.as_ref());
        let sampler = random.map_or(Ok(Sampler::greedy()), Sampler::random)?;
        sampling::note(generation.as_ref(), random);
        writing::note_widened(&verified);
        let talk = Talk {
            arguments,
            sampler,
            stop,
            verified: &verified,
            tokenizer: &tokenizer,
            template: &template,
        };
        backends::with::<C>(&arguments.compute, talk)
    }
}

/// Everything but the backend.
struct Talk<'a, C: Config> {
    arguments: &'a ChatArguments,
    sampler: Sampler,
    stop: Stop,
    verified: &'a Verified<'a, C>,
    tokenizer: &'a Tokenizer,
    template: &'a ChatTemplate,
}

impl<C: Config> ForBackend for Talk<'_, C> {
    fn run<B: Backend>(self, backend: &B) -> Outcome {
        let started = Instant::now();
        let model = writing::load(backend, self.verified)?;
        let loaded = started.elapsed();
        let mut session = Session {
            backend,
            model: &model,
            conversation: Conversation::new(self.arguments.system.as_deref()),
            transcript: None,
            sampler: self.sampler.clone(),
            stats: Stats::default(),
        };
        let code = session.talk(&self)?;
        if self.arguments.compute.stats {
            eprintln!("load     {:8.2} s", loaded.as_secs_f64());
            session.stats.print();
        }
        Ok(code)
    }
}

/// A conversation in progress.
struct Session<'m, B: Backend, C: Config> {
    backend: &'m B,
    model: &'m Model<B, C>,
    conversation: Conversation,
    /// What the model has read and written; none before the first message.
    transcript: Option<Transcript<'m, B, C>>,
    sampler: Sampler,
    stats: Stats,
}

/// Why a message has no reply, or not all of it. The conversation may go on.
#[derive(Debug, thiserror::Error)]
enum TurnError<E: Error + 'static> {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error("{0}; `/reset` begins a new conversation")]
    Sequence(SequenceError<E>),
}

impl<B: Backend, C: Config> Session<'_, B, C> {
    /// Reads and replies until the input ends. A message that fails is taken back, and the command
    /// fails in the end.
    fn talk(&mut self, of: &Talk<'_, C>) -> Outcome {
        let mut input = io::stdin().lock();
        let at_terminal = input.is_terminal();
        let mut code = ExitCode::SUCCESS;
        loop {
            if at_terminal {
                eprint!("> ");
            }
            match prompt::read_line(&mut input) {
                Ok(None) => return Ok(code),
                Ok(Some(line)) => match line.trim() {
                    "" => {}
                    "/exit" => return Ok(code),
                    "/reset" => self.conversation.reset(),
                    _ => match self.turn(of, line)? {
                        Ok(Reader::There) => {}
                        Ok(Reader::Gone) => return Ok(code),
                        Err(error) => {
                            eprintln!("error: {error}");
                            code = ExitCode::FAILURE;
                        }
                    },
                },
                Err(error @ PromptError::Utf8(_)) => {
                    eprintln!("error: {error} of the line");
                    code = ExitCode::FAILURE;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// One message and its reply. The outer error ends the conversation.
    fn turn(
        &mut self,
        of: &Talk<'_, C>,
        message: String,
    ) -> Result<Result<Reader, TurnError<B::Error>>, Box<dyn Error>> {
        self.conversation.user(message);
        let started = Instant::now();
        let (ids, is_opened) = match self.ids(of) {
            Ok(ready) => ready,
            Err(error) => {
                self.conversation.take_back();
                return Ok(Err(error));
            }
        };
        let new = || Transcript::new(self.backend, self.model);
        let mut transcript = self.transcript.take().unwrap_or_else(new);
        let (logits, brought) = match transcript.bring_to(&ids) {
            Ok(brought) => brought,
            Err(error @ SequenceError::Backend(_)) => return Err(error.into()),
            Err(error) => {
                self.transcript = Some(transcript);
                self.conversation.take_back();
                return Ok(Err(TurnError::Sequence(error)));
            }
        };
        let read = started.elapsed();

        let mut out = io::stdout().lock();
        // The prompt has the tag, and a reader should see where the thought begins.
        if is_opened && output::write(&mut out, "<think>\n")? == Reader::Gone {
            return Ok(Ok(Reader::Gone));
        }
        let mut tokens = Generation::after(transcript, logits, self.sampler.clone(), of.stop.clone());
        let written = writing::write(&mut tokens, of.tokenizer.stream_with_special(), &mut out)?;
        let (transcript, sampler) = tokens.into_parts();
        (self.transcript, self.sampler) = (Some(transcript), sampler);
        self.conversation.assistant(Reply::parse(&written.text, is_opened));
        self.stats.add(brought, read + written.first, written.decode);
        match written.error {
            None => Ok(Ok(written.reader)),
            Some(error @ SequenceError::Backend(_)) => Err(error.into()),
            Some(error) => Ok(Err(TurnError::Sequence(error))),
        }
    }

    /// The conversation's ids, and whether it ends with an open thought.
    fn ids(&self, of: &Talk<'_, C>) -> Result<(Vec<u32>, bool), TurnError<B::Error>> {
        let text = self.text(of)?;
        Ok((of.tokenizer.encode(&text)?, Reply::is_opened_by(&text)))
    }

    /// The conversation as the model reads it, up to where the assistant begins.
    fn text(&self, of: &Talk<'_, C>) -> Result<String, TemplateError> {
        let thinking = of.arguments.thinking.map(|thinking| thinking == Thinking::On);
        let variables = thinking.map(|on| ("enable_thinking".to_owned(), on.into()));
        of.template.render(&Request {
            messages: self.conversation.to_value(),
            tools: None,
            add_generation_prompt: true,
            variables: BTreeMap::from_iter(variables),
        })
    }
}

/// What a conversation took.
#[derive(Debug, Default)]
struct Stats {
    turns: usize,
    /// The prompts' tokens that were run, up to and with the choice of each first token.
    prefill: Count,
    decode: Count,
    kept: usize,
    restarts: usize,
    dropped: usize,
}

impl Stats {
    fn add(&mut self, brought: qwen35_model::generate::Brought, read: Duration, decode: Count) {
        self.turns += 1;
        self.prefill += Count { tokens: brought.run, time: read };
        self.decode += decode;
        self.kept += brought.kept;
        self.restarts += usize::from(brought.dropped > 0);
        self.dropped += brought.dropped;
    }

    fn print(&self) {
        let Self { turns, prefill, decode, kept, restarts, dropped } = self;
        eprintln!("prefill  {prefill}");
        eprintln!("decode   {decode}");
        eprintln!(
            "turns    {turns}, {kept} tokens kept from turn to turn; {restarts} restarts dropped {dropped}"
        );
    }
}
